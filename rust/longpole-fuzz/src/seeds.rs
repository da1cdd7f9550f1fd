//! Initial inputs: small ones that contain the features of each format.

use crate::mutation::gzip;

const TRACE: &str = r#"{
  "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100", "totalGlobalMem": 42}],
  "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 41, "tid": 41,
    "ts": 5085925712345.250, "dur": 6.125,
    "args": {
      "External id": 1, "Sequence number": 3, "Fwd thread id": 0,
      "Input Dims": [[64, 4], []], "Input type": ["float", "Scalar"]
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 41, "tid": 41,
    "ts": 5085925712346.250, "dur": 2,
    "args": {
      "External id": 1, "cbid": 211, "correlation": 7
    }
  },
  {
    "ph": "s", "id": 7, "pid": 41, "tid": 41, "ts": 5085925712346.250, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "f", "id": 7, "pid": 0, "tid": 7, "ts": 5085925712360.001, "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void gemm<\"a\">", "pid": 0, "tid": 7,
    "ts": 5085925712360.001, "dur": 31.001,
    "args": {
      "device": 0, "stream": 7, "correlation": 7, "grid": [1, 2, 3], "bytes": 9
    }
  },
  {"ph": "B", "name": "b\u00e9\n", "pid": 41, "tid": 42, "ts": 1}, {"ph": "E", "pid": 41, "tid": 42, "ts": 2},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 41, "tid": 41, "ts": 3,
   "args": {"Total Allocated": 5, "Bytes": -4, "Addr": 140000000000000, "Device Id": 0, "Device Type": 1}},
  {"ph": "C", "name": "c", "pid": 1, "ts": 4, "args": {"free": 1.5, "used": 2}},
  {"name": "process_name", "ph": "M", "ts": 0, "pid": 41, "tid": 0, "args": {"name": "python"}}
  ],
  "traceName": "run.json", "baseTimeNanoseconds": 1700000000000000000
}
"#;
const XPROF: &str = r#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14(Compute)"}},
{"ph":"M","pid":1,"tid":15,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"X","pid":1,"tid":14,"ts":1.5,"dur":2,"name":"MemcpyH2D","args":{"correlation_id":"7","memcpy_details":"kind_src:device kind_dst:pageable size:64 async:1"}},
{"ph":"X","pid":1,"tid":14,"ts":4.5,"dur":2,"name":"fusion","args":{"kernel_details":"regs:8 static_shared:0 dynamic_shared:4 grid:1,1,1 block:2,1,1"}},
{"ph":"X","pid":1,"tid":15,"ts":4.5,"dur":2,"name":"fusion.1"},{"ph":"X","pid":701,"tid":3,"ts":0,"dur":9,"name":"train","args":{"step_num":"3"}},
{"ph":"X","pid":701,"tid":3,"ts":1,"dur":1,"name":"cuMemcpyHtoDAsync_v2","args":{"correlation_id":"7"}},{}]}"#;
const ARRAY: &str = r#"[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{}},
{"ph":"b","cat":"x","id":"0x1","name":"n","pid":"p","tid":"t","ts":1e3},{"ph":"e","cat":"x","id":"0x1","ts":2e3}]"#;
const LOG: &str = r#"OP:gemm<64, 64>,TIME:0.25,WS:1024
TIME:1.5
WS:4
       Operation: cutlass_simt_sgemm_nn
     Disposition: Passed
         Runtime: 6.73655  ms
Problem,Provider,OperationKind,Operation,Disposition,Status,m,Bytes,Runtime,GB/s
1,CUTLASS,gemm,cutlass_simt_sgemm_nn,passed,success,3456,180355072,6.73655,24.934
[0]:transA,transB,grouped_gemm,m,n,k,hipblaslt-Gflops,hipblaslt-GB/s,us
    T,N,0,106496,8,16384,1.30708e+06,234.327,21871.2
#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
  1024  256  float  sum  -1  63896  134.44  235.26  N/A  63959  134.30  235.03  0
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","371693","sgemm<128, ""64"">","Duration","nsecond","406,240",
Perf: 1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl<256, 128>
algo={ Id=6, tileIdx=20 (128x128) splitK=1 } status 0 time 0.031744 workspace=0 mathMode=0 waves=0.5
"Kind","Kernel_Name","Start_Timestamp","End_Timestamp"
"KERNEL_DISPATCH","add<float>(int)",1551874061244694,1551874061255734
"Name","Calls","TotalDurationNs","AverageNs"
"add<float>(int)",10,5176474,517647.4
AUTOTUNE mm(64x32, 32x64)
  triton_mm_16 0.0870 ms 97.4% BLOCK_K=32
Triton autotuning for function f,
with key as (4096),
finished after 0.41s,
best config selected: BLOCK_M: 128;
============ Serving Benchmark Result ============
Successful requests:                     500
Benchmark duration (s):                  277.20
Mean TTFT (ms):                          95.50
name,iterations,real_time,cpu_time,time_unit,label,error_occurred
"BM_sort/64",128172,380.766,201.43,ns,,
Benchmark           Time             CPU   Iterations
BM_sort/64        387 ns          198 ns       134530
# Benchmark Results
## copy
|  T  | Samples |  GPU Time  |
|-----|---------|------------|
| I32 |   1232x | 112.431 us |
"#;
const VALUES: &[&str] = &[
    r#"{"a": [1, -2.5e-3, true, false, null, "x\n\u00e9\ud83d\ude00"], "b": {}}"#,
    "[[[[[]]]], {\"k\": 0}, 1E+9, -0, 0.5]",
    "\"text with \\\" and \\\\ and \\/\"",
    "12345678901234567890",
];

pub(crate) fn traces() -> Vec<Vec<u8>> {
    let compact = TRACE.replace('\n', "");
    [TRACE, ARRAY, XPROF, &compact].iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub(crate) fn packed_traces() -> Vec<Vec<u8>> {
    traces().iter().map(|text| gzip(text)).collect()
}

pub(crate) fn logs() -> Vec<Vec<u8>> {
    vec![LOG.as_bytes().to_vec()]
}

pub(crate) fn values() -> Vec<Vec<u8>> {
    VALUES.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Returns bytes of events for the target `graph`: some in order, some at random.
pub(crate) fn tables() -> Vec<Vec<u8>> {
    let mut random = crate::Random::new(0);
    let mut byte = || u8::try_from(random.below(256)).unwrap_or(0);
    (0..8).map(|size| (0..60 * (size + 1)).map(|_| byte()).collect()).collect()
}
