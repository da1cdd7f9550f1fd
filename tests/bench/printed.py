"""What each tool prints, written by hand in the shape of its documentation or source.

`TEXTS` are found among foreign lines; a document of `DOCUMENTS` is a file of its own.
"""

TEXTS = {
    "aitemplate": """\
[rank0] starting
OP:gemm_64x64,TIME:0.25,WS:1024
""",
    "cutlass": """\
=============================
  Problem ID: 1

        Provider: CUTLASS
       Operation: cutlass_simt_sgemm_nn
          Status: Success
     Disposition: Passed
       Arguments: --m=3456 --n=4096 \\
                  --k=4096
           Bytes: 180355072  bytes
         Runtime: 6.73655  ms
            Math: 17218.4 GFLOP/s

""",
    "cutlass-csv": """\
CSV Results:

Problem,Provider,OperationKind,Operation,Disposition,Status,m,Bytes,Flops,Runtime,GB/s,GFLOPs
1,CUTLASS,gemm,cutlass_simt_sgemm_nn,passed,success,3456,180355072,2,6.73655,24.934,17218.4

""",
    "hipblaslt": """\
[0]:transA,transB,grouped_gemm,m,n,k,hipblaslt-Gflops,hipblaslt-GB/s,us
    T,N,0,106496,8,16384,1.30708e+06,234.327,21871.2
    --Solution index: 302128
""",
    "rocblas": """\
transA,transB,M,N,K,rocblas-Gflops,us
N,T,7680,8192,8192, 10037.5, 102694
""",
    "nccl": """\
#     size       count   type redop root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
8589934592  2147483648  float   sum   -1  63896 134.44 235.26    N/A  63959 134.30 235.03    N/A
# Avg bus bandwidth    : 235.145
""",
    "ncu": """\
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","371693","sgemm<128, 64>","Duration","nsecond","406,240",
""",
    "ckprofiler": """\
a_m_k: dim 2, lengths {3840, 4096}, strides {4096, 1}
Perf:     1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl<256, 128> Default
Best Perf for datatype = f16 M = 3840 : 1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl
""",
    "cublaslt": """\
result 000 : algo={ Id=6, tileIdx=20 (128x128) splitK=1 reduc=0 swizzle=0 custom=0 stages=15} \
status 0 time 0.031744 workspace=0 mathMode=0 waves=0.592593
""",
    "rocprof": """\
"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","VGPR"
"KERNEL_DISPATCH","Agent 4",1,"void add<float>(float*, int)",1,1551874061244694,1551874061255734,8
"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"
"JacobiIterationKernel(int, double)",1000,517647434,517647.434000,42.56,510404,527365,2907.325924
Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct
"vecCopy(double*, double*, int)",10,195681,19568.1,18400.0,100.0
Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name,Start_Timestamp,End_Timestamp,SQ_WAVES
0,2,1048576,"vecCopy(double*, double*, int)",1678314002982197,1678314003001097,16384.0
""",
    "inductor": """\
AUTOTUNE mm(2048x2048, 2048x2048)
strides: [2048, 1], [2048, 1]
dtypes: torch.bfloat16, torch.bfloat16
  mm 0.0848 ms 100.0%\u0020
  triton_mm_16 0.0870 ms 97.4% ACC_TYPE='tl.float32', BLOCK_K=32, num_stages=3, num_warps=4
SingleProcess AUTOTUNE benchmarking takes 0.7160 seconds and 2.7616 seconds precompiling
""",
    "triton": """\
Triton autotuning for function matmul_kernel,
with key as (4096, 3072, 'torch.float16'),
finished after 0.41s,
best config selected: BLOCK_M: 128, BLOCK_N: 128, num_warps: 4, num_ctas: 1, num_stages: 4;
Triton autotuning for function softmax finished after 3.97s; best config selected: BLOCK: 64;
""",
    "serving": """\
============ Serving Benchmark Result ============
Successful requests:                     500       \n\
Benchmark duration (s):                  277.20    \n\
Total generated tokens:                  119503    \n\
Output token throughput (tok/s):         431.10    \n\
---------------Time to First Token----------------
Mean TTFT (ms):                          95.50     \n\
Median TTFT (ms):                        69.14     \n\
P99 TTFT (ms):                           623.87    \n\
-----Time per Output Token (excl. 1st token)------
Median TPOT (ms):                        39.28     \n\
==================================================
""",
    "serving-latency": """\
Avg latency: 1.0815 seconds
Prefill. latency: 0.04937 s, throughput:  20742.54 token/s
""",
    "google-benchmark-csv": """\
name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred
"BM_sort/64",128172,380.766,201.43,ns,,3.17729e+08,,
"BM_sort/64_cv",2,1.78037e+07,2.15359e+06,ns,,0.00430719,,
"BM_broken",,,,,,,,true
""",
    "google-benchmark": """\
-----------------------------------------------------------------------------
Benchmark                   Time             CPU   Iterations UserCounters...
-----------------------------------------------------------------------------
BM_sort/64                387 ns          198 ns       134530 items_per_second=323.974M/s
BM_sort/64_stddev        28.7 ns        0.597 ns            2 items_per_second=975.043k/s
BM_broken             ERROR OCCURRED: 'no such file'
""",
    "nvbench": """\
# Benchmark Results

## copy_type_sweep

### [0] NVIDIA A30

|  T  | Elements | Samples |  CPU Time  | Noise |  GPU Time  | Noise | GlobalMem BW |
|-----|----------|---------|------------|-------|------------|-------|--------------|
| I32 |   2^20   |   1232x | 120.645 us | 4.12% | 112.431 us | 4.12% | 374.514 GB/s |
""",
}

DOCUMENTS = {
    "hyperfine": """\
{
  "results": [
    {
      "command": "sleep 0.1",
      "mean": 0.1019, "stddev": 0.0005, "median": 0.1018, "user": 0.0009, "system": 0.0011,
      "min": 0.1012, "max": 0.1031,
      "times": [0.1012, 0.10180000000000002, 0.1031],
      "exit_codes": [0, 0, 1],
      "parameters": {"threads": "4"}
    },
    {"command": "make", "mean": 2.5, "median": 2.4, "min": 2.0, "max": 3.0, "exit_codes": [0]}
  ]
}
""",
    "pyperf": """\
{"benchmarks":[{"metadata":{"loops":64},"runs":[
{"metadata":{"date":"2026-01-05 10:00:00.000000"},"warmups":[[1,0.25],[64,0.0031]]},
{"metadata":{"date":"2026-01-05 10:00:01.000000"},"values":[0.0030,0.0031],"warmups":[[64,0.0031]]},
{"metadata":{"date":"2026-01-05 10:00:02.000000"},"values":[0.0032,0.0033]}]},
{"metadata":{"name":"memory","unit":"byte"},"runs":[{"values":[7340032]}]}],
"metadata":{"name":"sort","unit":"second"},"version":"1.0"}
""",
    "google-benchmark-json": """\
{
  "context": {"date": "2026-01-05T10:00:00+00:00", "num_cpus": 2, "library_build_type": "release"},
  "benchmarks": [
    {"name": "BM_sort/64", "run_name": "BM_sort/64", "run_type": "iteration", "iterations": 134530,
     "real_time": 3.8747621e+02, "cpu_time": 1.98e+02, "time_unit": "ns"},
    {"name": "BM_sort/64_median", "run_name": "BM_sort/64", "run_type": "aggregate",
     "aggregate_name": "median", "real_time": 387.0, "cpu_time": 198.0, "time_unit": "ns"},
    {"name": "BM_copy_mean", "run_name": "BM_copy", "run_type": "aggregate",
     "aggregate_name": "mean", "real_time": 7.0, "cpu_time": 7.0, "time_unit": "us"},
    {"name": "BM_copy_median", "run_name": "BM_copy", "run_type": "aggregate",
     "aggregate_name": "median", "real_time": 6.5, "cpu_time": 6.0, "time_unit": "us"},
    {"name": "BM_copy_cv", "run_name": "BM_copy", "run_type": "aggregate",
     "aggregate_name": "cv", "aggregate_unit": "percentage", "real_time": 0.02, "time_unit": "us"},
    {"name": "BM_broken", "run_name": "BM_broken", "run_type": "iteration",
     "error_occurred": true, "error_message": "no such file", "real_time": 0.0, "time_unit": "ns"}
  ]
}
""",
    "nvbench-json": """\
{"meta": {"version": {"json": {"major": 1}}}, "devices": [{"id": 0, "name": "NVIDIA A30"}],
 "benchmarks": [{"name": "copy", "index": 0, "axes": null, "states": [
  {"name": "Device=0 T=I32", "device": 0,
   "axis_values": [{"name": "T", "type": "string", "value": "I32"}],
   "summaries": [
    {"tag": "nv/cold/sample_size", "data": [{"name": "value", "type": "int64", "value": "1232"}]},
    {"tag": "nv/cold/time/gpu/mean", "hint": "duration",
     "data": [{"name": "value", "type": "float64", "value": "0.00011243100"}]}],
   "is_skipped": false},
  {"name": "Device=0 T=I64", "device": 0,
   "axis_values": [{"name": "T", "type": "string", "value": "I64"}], "summaries": null,
   "is_skipped": true, "skip_reason": "too large"},
  {"name": "Device=0", "device": 0, "axis_values": null, "summaries": [
    {"tag": "nv/cpu_only/time/cpu/mean",
     "data": [{"name": "value", "type": "float64", "value": "0.0015"}]}], "is_skipped": false}
 ]}]}
""",
    "rocprof-json": """\
{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1},
 "kernel_symbols": [{"kernel_id": 0}, {"kernel_id": 7, "kernel_name": "_Z3addPfi.kd",
                     "formatted_kernel_name": "add(float*, int)"}],
 "buffer_records": {"memory_copy": [], "kernel_dispatch": [
  {"start_timestamp": 1700000000000000100, "end_timestamp": 1700000000000000107,
   "dispatch_info": {"kernel_id": 7, "dispatch_id": 1}},
  {"start_timestamp": 20, "end_timestamp": 20, "dispatch_info": {"kernel_id": 7}}]}}]}
""",
    "serving-json": """\
{"date": "20260105-100000", "backend": "vllm", "model_id": "llama", "num_prompts": 500,
 "request_rate": "inf", "duration": 277.20, "completed": 500, "total_output_tokens": 119503,
 "request_throughput": 1.80, "output_throughput": 431.10,
 "mean_ttft_ms": 95.5, "median_ttft_ms": 69.14, "std_ttft_ms": 9.5, "p99_ttft_ms": 623.87,
 "median_tpot_ms": 39.28, "input_lens": [5, 6], "errors": ["", ""]}
{"backend": "sglang", "duration": 270.5, "completed": 500, "request_throughput": 1.9,
 "median_ttft_ms": 68.5, "mean_e2e_latency_ms": 4295.92}
""",
    "vllm-latency-json": """\
{"avg_latency": 1.5, "latencies": [1.25, 1.75], "percentiles": {"50": 1.5, "99": 1.7}}
""",
    "vllm-throughput-json": """\
{"elapsed_time": 20.25, "num_requests": 200, "total_num_tokens": 82000, \
"requests_per_second": 9.87, "tokens_per_second": 4049.3}
""",
}
