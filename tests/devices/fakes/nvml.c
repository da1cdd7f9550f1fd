/* A libnvidia-ml.so.1 with two devices that are not there, for the real pynvml to load.

   NVML_FAKE_LOST=1 loses the second device; NVML_FAKE_THROTTLE sets the reasons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char legacy[16]; unsigned domain, bus, device, pci, subsystem; char bus_id[32]; } pci_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned gpu, memory; } utilisation_info;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process_info;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT = 7, LOST = 15 };

static const char *uuids[] = {"GPU-aaaaaaaa-0000-0000-0000-000000000000",
                              "GPU-bbbbbbbb-0000-0000-0000-000000000001"};
static int places[] = {0, 1};

static int index_of(void *device) { return *(int *)device; }
static int check(void *device) {
    return index_of(device) == 1 && getenv("NVML_FAKE_LOST") ? LOST : OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : "fake error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "575.1"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index > 1) return INVALID;
    *device = &places[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    for (int index = 0; index < 2; index++)
        if (!strcmp(uuid, uuids[index])) { *device = &places[index]; return check(*device); }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    snprintf(text, size, "%s", uuids[index_of(device)]);
    return OK;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
    (void)device;
    snprintf(text, size, "NVIDIA Fake 100");
    return OK;
}
int nvmlDeviceGetPciInfo_v3(void *device, pci_info *info) {
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", 0x3B + index_of(device));
    return OK;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    *major = 9;
    *minor = 0;
    return OK;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_info *info) {
    info->total = 80ULL << 30;
    info->used = index_of(device) ? 40ULL << 30 : 100 << 20;
    info->free = info->total - info->used;
    return check(device);
}
int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz) { *mhz = type == 2 ? 2619 : 1410; return check(device); }
int nvmlDeviceGetMaxClockInfo(void *device, unsigned type, unsigned *mhz) { (void)type; *mhz = 1980; return check(device); }
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) { (void)sensor; *celsius = 41; return check(device); }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 70500; return check(device); }
int nvmlDeviceGetUtilizationRates(void *device, utilisation_info *rates) { rates->gpu = 0; rates->memory = 0; return check(device); }
int nvmlDeviceGetTotalEccErrors(void *device, unsigned type, unsigned counter, unsigned long long *count) {
    (void)device; (void)type; (void)counter; (void)count;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) {
    const char *wanted = getenv("NVML_FAKE_THROTTLE");
    *bits = wanted ? strtoull(wanted, NULL, 0) : 0;
    return check(device);
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, bits);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_info *found) {
    if (!index_of(device)) { *count = 0; return OK; }
    if (!found) { *count = 1; return INSUFFICIENT; }
    *count = 1;
    found[0].pid = 4242;
    found[0].used = 39ULL << 30;
    return check(device);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process_info *found) {
    (void)device; (void)found;
    *count = 0;
    return OK;
}
