//! Reads databases and documents of other profilers: there are no more events than the file has
//! room for, and the later stages end.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use longpole_core::progress::silent;
use longpole_core::read::{Options, read_bytes, read_path};
use rusqlite::Connection;

use crate::reading::stages;

/// Small pages, so that a small file has trees of several pages.
const PAGE_BYTES: usize = 512;

const NSIGHT: &str = "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000'), (3, 'python');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100', 85899345920);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
  blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,
  dynamicSharedMemory INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 1000, i * 1000 + 700, 0, 1, 7, i,
  281476838981632, 1, 32, i, 1, 1, 128, 1, 1, 0, 1024, NULL FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 1000 - 500, i * 1000 - 300, i % 2,
  281476838981743, i, 2 FROM n;
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, bytes,
  copyKind, srcKind, dstKind);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5, 'x', 0, 7, 1.5, x'00ff', 1, 0, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, streamId,
  correlationId, globalPid, syncType, eventId, eventSyncId);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
  VALUES (9, 12, 0, 1, 4294967295, 3, 281476838981632, 2, 5, 6);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (streamId, correlationId, globalPid, contextId,
  eventId, eventSyncId);
INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (7, 2, 281476838981632, 1, 5, 6);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
  globalTid INTEGER, textId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (1, 90000, 59, 'aten::mm, seq = 3, op_id = 12, sizes = [[2, 3]]',
  281476838981743, NULL), (2, NULL, 60, NULL, 281476838981743, 3), (3, 4, 34, 'mark', NULL, NULL);
CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value);
INSERT INTO GPU_METRICS VALUES (1, 2, 3, 4), (2, 2, 3, 'x');
CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (3, 281476838981743);
CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS SELECT * FROM CUPTI_ACTIVITY_KIND_MEMSET;
CREATE TRIGGER t AFTER INSERT ON ThreadNames BEGIN DELETE FROM StringIds; END;
";

const ROCPD: &str = "
CREATE TABLE rocpd_string_1 (id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO rocpd_string_1 VALUES (1, 'hipLaunchKernel'), (2, 'HIP_RUNTIME_API'),
  (3, 'MARKER_CORE_API'), (4, 'MEMORY_COPY_HOST_TO_DEVICE');
CREATE TABLE rocpd_info_agent_1 (id INTEGER PRIMARY KEY, type TEXT, logical_index INTEGER);
INSERT INTO rocpd_info_agent_1 VALUES (0, 'CPU', 0), (1, 'GPU', 0);
CREATE TABLE rocpd_info_process_1 (id INTEGER PRIMARY KEY, pid INTEGER);
INSERT INTO rocpd_info_process_1 VALUES (1, 4711);
CREATE TABLE rocpd_info_kernel_symbol_1 (id INTEGER PRIMARY KEY, display_name TEXT);
INSERT INTO rocpd_info_kernel_symbol_1 VALUES (1, 'gemm');
CREATE TABLE rocpd_track_1 (id INTEGER PRIMARY KEY, pid, tid, agent_id, queue_id, stream_id);
INSERT INTO rocpd_track_1 VALUES (1, 1, 4712, NULL, NULL, NULL), (2, 1, NULL, 1, 3, 4);
CREATE TABLE rocpd_timestamp_1 (id INTEGER PRIMARY KEY, value BIGINT);
CREATE TABLE rocpd_event_1 (id INTEGER PRIMARY KEY, category_id, stack_id, extdata TEXT);
CREATE TABLE rocpd_region_1 (id INTEGER PRIMARY KEY, track_id, name_id, start_id, end_id, event_id);
CREATE TABLE rocpd_kernel_dispatch_1 (id INTEGER PRIMARY KEY, track_id, kernel_id, start_id, end_id,
  group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x,
  grid_size_y, grid_size_z, event_id);
CREATE TABLE rocpd_memory_copy_1 (id INTEGER PRIMARY KEY, pid, tid, start, end, name_id,
  dst_agent_id, size, event_id);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
  INSERT INTO rocpd_timestamp_1 SELECT i, i * 100 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO rocpd_event_1 SELECT i, 2 + i % 2, i, '{\"message\": \"step\"}' FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO rocpd_region_1 SELECT i, 1, 1, 2 * i - 1, 2 * i, i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO rocpd_kernel_dispatch_1 SELECT i, 2, 1, 2 * i - 1, 2 * i, 0, 0, 64, 1, 640, 1, 1, i
  FROM n;
INSERT INTO rocpd_memory_copy_1 VALUES (1, 4711, 4712, 5, 9, 4, 1, 'many', 3);
CREATE VIEW rocpd_region AS SELECT * FROM rocpd_region;
";

const RPD: &str = "
CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO rocpd_string VALUES (1, 'hipLaunchKernel'), (2, 'gemm'), (3, 'KernelExecution'),
  (4, ''), (5, 'CopyHostToDevice'), (6, 'UserMarker'), (7, 'step'), (8, 'Barrier');
CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);
CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, start, end,
  description_id, opType_id);
CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id, op_id);
CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, stream TEXT, gridX, gridY, gridZ,
  workgroupX, workgroupY, workgroupZ, groupSegmentSize, kernelName_id);
CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, stream TEXT, size, kind);
CREATE TABLE rocpd_monitor (id INTEGER PRIMARY KEY, deviceType, deviceId, monitorType, start, end,
  value);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO rocpd_api SELECT i, 7, 7, 100 * i, 100 * i + 9, 1 + 5 * (i % 9 = 0), 7 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO rocpd_op SELECT i, 0, 1, 0, 100 * i + 20, 100 * i + 90, 2 + 2 * (i % 5 = 0),
  3 + 2 * (i % 5 = 0) + 3 * (i % 10 = 0) FROM n;
INSERT INTO rocpd_api_ops SELECT id, id, id FROM rocpd_op;
INSERT INTO rocpd_kernelapi SELECT id, '0x0', 8, 1, 1, 64, 1, 1, 0, 2 FROM rocpd_op;
INSERT INTO rocpd_copyapi VALUES (5, '0x0', 4096, 1), (15, '0x0', 'many', -9223372036854775808);
INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'sclk', 150, 900, '1700'), (2, 'gpu', 0, 'x', 1, 2, '');
";

const DOCUMENT: &str = r#"{"rocprofiler-sdk-tool":[{"metadata":{"pid":908,"config":{"a":[1,{}]}},
"agents":[{"id":{"handle":7},"type":2,"logical_node_type_id":0,"name":"gfx950"}],
"strings":{"buffer_records":[{"kind":"NONE","operations":[]},{"kind":"HIP_RUNTIME_API","operations":
["hipLaunchKernel"]},{"kind":"MEMORY_COPY","operations":["MEMORY_COPY_HOST_TO_DEVICE"]},
{"kind":"MARKER_CORE_API","operations":["roctxRangePushA"]}],"marker_api":[{"key":9,"value":"step"}]},
"kernel_symbols":[{"kernel_id":8,"formatted_kernel_name":"gemm<1>","kernel_name":"gemm.kd"}],
"buffer_records":{"kernel_dispatch":[{"thread_id":908,"correlation_id":{"internal":1,"external":0},
"start_timestamp":100,"end_timestamp":140,"dispatch_info":{"agent_id":{"handle":7},"queue_id":
{"handle":16},"kernel_id":8,"group_segment_size":0,"workgroup_size":{"x":512,"y":1,"z":0},
"grid_size":{"x":1024,"y":1,"z":1}},"stream_id":{"handle":2}}],
"hip_api":[{"kind":1,"operation":0,"thread_id":908,"correlation_id":{"internal":1},
"start_timestamp":90,"end_timestamp":95}],"marker_api":[{"kind":3,"operation":0,"thread_id":908,
"correlation_id":{"internal":9},"start_timestamp":80,"end_timestamp":200}],
"memory_copy":[{"kind":2,"operation":0,"correlation_id":{"internal":3},"start_timestamp":-1,
"end_timestamp":1e3,"dst_agent_id":{"handle":7},"bytes":18446744073709551615}]}}]}"#;

const KERNELS: &str = r#""Guid","Kind","Agent_Id","Queue_Id","Stream_Id","Kernel_Name","Correlation_Id",
"Start_Timestamp","End_Timestamp","LDS_Block_Size","Workgroup_Size_X","Workgroup_Size_Y",
"Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z""#;
const CALLS: &str = r#""Domain","Function","Process_Id","Thread_Id","Correlation_Id",
"Start_Timestamp","End_Timestamp""#;
const COPIES: &str = r#""Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id",
"Correlation_Id","Start_Timestamp","End_Timestamp""#;
const OLD: &str = "Index,KernelName,gpu-id,queue-id,lds,WriteSize,DispatchNs,BeginNs,EndNs";

/// Returns CSV files, one for each kind of rows.
pub(crate) fn csv() -> Vec<Vec<u8>> {
    let row = |number: u64| {
        let (start, end) = (number * 100, number * 100 + 70);
        [
            format!(
                r#""g","K","Agent 4",1,2,"f<int, ""{number}"">",{number},{start},{end},0,64,1,0,64,1,1"#
            ),
            format!(r#""MARKER_CORE_API","two{}lines",7,8,{number},{start},{end}"#, '\n'),
            format!(
                r#""M","MEMORY_COPY_DEVICE_TO_HOST",1,"Agent 4","CPU 0",{number},{start},{end}"#
            ),
            format!(r#"{number},"gemm.kd",8,0,512,2.5,{start},{start},{end}"#),
        ]
    };
    let rows: Vec<_> = (1..20).map(row).collect();
    let file = |(place, header): (usize, &str)| {
        let rows = rows.iter().map(|row| row[place].clone());
        let lines: Vec<_> = std::iter::once(header.replace('\n', "")).chain(rows).collect();
        (lines.join("\n") + "\n").into_bytes()
    };
    [KERNELS, CALLS, COPIES, OLD].into_iter().enumerate().map(file).collect()
}

/// Reads any bytes as a document of `rocprofv3`.
pub(crate) fn rocprof(bytes: &[u8]) {
    if let Ok(tables) = read_bytes(bytes, &Options::default()) {
        assert!(tables.events.len() <= bytes.len(), "more events than bytes");
        stages(&tables);
    }
}

pub(crate) fn documents() -> Vec<Vec<u8>> {
    vec![DOCUMENT.replace('\n', "").into_bytes()]
}

/// Reads any bytes as a database.
pub(crate) fn database(bytes: &[u8]) {
    let path = own_path("input");
    let mut file = File::create(&path).expect("the temporary folder takes files");
    file.write_all(&whole_pages(bytes)).expect("the temporary folder takes files");
    drop(file);
    if let Ok(tables) = read_path(&path, &Options::default(), &silent) {
        assert!(tables.events.len() <= bytes.len(), "more events than bytes");
        stages(&tables);
    }
}

/// Returns the bytes with the front of a database, so that most inputs are read as one.
fn whole_pages(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
    for (byte, &wanted) in bytes.iter_mut().zip(b"SQLite format 3\0\x02\0\x01\x01") {
        *byte = wanted;
    }
    bytes
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    vec![made(NSIGHT), made(ROCPD), made(RPD)]
}

/// Returns the bytes of a database created by these statements.
fn made(statements: &str) -> Vec<u8> {
    let path = own_path("seed");
    let _ = fs::remove_file(&path);
    let connection = Connection::open(&path).expect("the temporary folder takes files");
    let statements = format!("PRAGMA page_size = {PAGE_BYTES}; {statements}");
    connection.execute_batch(&statements).expect("the statements are sound");
    drop(connection);
    let bytes = fs::read(&path).expect("it was written");
    let _ = fs::remove_file(&path);
    bytes
}

/// Returns a path that no other thread or process uses.
fn own_path(name: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let digits: String = thread.chars().filter(char::is_ascii_digit).collect();
    std::env::temp_dir().join(format!("longpole-fuzz-{}-{digits}-{name}", std::process::id()))
}
