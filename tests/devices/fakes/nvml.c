/* A libnvidia-ml.so.1 with two devices that are not there, for the real pynvml to load.

   NVML_FAKE_LOST=1 loses the second device; NVML_FAKE_THROTTLE sets the reasons, as does the
   file that NVML_FAKE_THROTTLE_FILE names while it is there, which also lets violations grow.
   NVML_FAKE_MIG=1 parts the first device in two instances. Clocks that are set and let go are
   noted in the file that NVML_FAKE_LOG names, and refused where it names none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char legacy[16]; unsigned domain, bus, device, pci, subsystem; char bus_id[32]; } pci_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned gpu, memory; } utilisation_info;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process_info;

typedef struct { unsigned long long reference, violation; } violation_info;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT = 7, LOST = 15 };

static const char *uuids[] = {"GPU-aaaaaaaa-0000-0000-0000-000000000000",
                              "GPU-bbbbbbbb-0000-0000-0000-000000000001"};
static const char *instances[] = {"MIG-11111111-0000-0000-0000-000000000000",
                                  "MIG-22222222-0000-0000-0000-000000000000"};
static int places[] = {0, 1, 2, 3}; /* the last two are instances of the first */

static int index_of(void *device) { return *(int *)device; }
static int is_throttled(void) {
    const char *path = getenv("NVML_FAKE_THROTTLE_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) fclose(file);
    return file != NULL;
}
static int note(const char *text) {
    const char *path = getenv("NVML_FAKE_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return NO_PERMISSION;
    fprintf(file, "%s\n", text);
    fclose(file);
    return OK;
}
static int check(void *device) {
    return index_of(device) == 1 && getenv("NVML_FAKE_LOST") ? LOST : OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : code == NO_PERMISSION ? "Insufficient Permissions" : "fake error"; }
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
    for (int index = 0; index < 2; index++)
        if (!strcmp(uuid, instances[index])) { *device = &places[2 + index]; return OK; }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    int index = index_of(device);
    snprintf(text, size, "%s", index > 1 ? instances[index - 2] : uuids[index]);
    return OK;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
    snprintf(text, size, index_of(device) > 1 ? "NVIDIA Fake 100 MIG 3g.40gb" : "NVIDIA Fake 100");
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
    info->used = index_of(device) == 1 ? 40ULL << 30 : 100 << 20;
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
    *bits = is_throttled() ? 0x40 : wanted ? strtoull(wanted, NULL, 0) : 0;
    return check(device);
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, bits);
}
int nvmlDeviceGetViolationStatus(void *device, unsigned policy, violation_info *found) {
    static unsigned long long so_far = 0;
    if (policy == 1 && is_throttled()) so_far += 1000000;
    found->reference = 0;
    found->violation = policy == 1 ? so_far : 0;
    return check(device);
}
int nvmlDeviceSetGpuLockedClocks(void *device, unsigned low, unsigned high) {
    char text[64];
    (void)device;
    snprintf(text, sizeof text, "lock %u %u", low, high);
    return note(text);
}
int nvmlDeviceResetGpuLockedClocks(void *device) { (void)device; return note("release"); }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12080; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) { *milliwatts = 700000; return check(device); }
int nvmlDeviceGetPersistenceMode(void *device, unsigned *mode) { *mode = 1; return check(device); }
int nvmlDeviceGetComputeMode(void *device, unsigned *mode) { *mode = 0; return check(device); }
int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *pending) { *now = *pending = 1; return check(device); }
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending) {
    *now = *pending = getenv("NVML_FAKE_MIG") && index_of(device) == 0;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { (void)device; *count = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **instance) {
    (void)device;
    if (index > 1) return NOT_FOUND;
    *instance = &places[2 + index];
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_info *found) {
    if (index_of(device) != 1) { *count = 0; return OK; }
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
