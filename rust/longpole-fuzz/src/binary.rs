//! Inputs of binary formats: Protocol Buffers messages, and compressed traces.

use std::io::Write as _;

/// A trace of three events, compressed with `zstd -9 --check`.
const ZSTD: &[u8] = b"\
    (\xb5/\xfdd\x01\x00\xd5\x03\x00r\xc6\x15\x1b\x80K3\x06=\xa8\x96\xdd\xda\xf6\xfb\x1f\xa4{\
    \xf7\x8c\x11\x83\xc4\x02\xf1t\xe6\xa0\x8aE\x07\x86\xf7L\xc0\x9c\xa3T\xe6\xd2E\xccqPX\x1a\
    \xe4N\xf7\x81\x18\xc1\xf7\x96\xdc%\x1a\x1a\x01yS\x92\xf1\xe4nG\xc1\x8e&O\x16l\x5c\x15Z\xe3\
    \x0d]M\x19\xe7\x8b\xd28\xe1\x5c\xc1^\x0a\x01\x0d\x00Pp\x0c\x99\x81!\x90/\x19\x08\x87\xadx\
    \xf1\xaf\x8a\x0dT\x140\xc5\x02\x92\x82\xbb\x95HO0\x9d\x8a\x8a\xf9x";
/// The same trace, compressed with `xz -1`.
const XZ: &[u8] = b"\
    \xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01\x10\x00\x00\x00\xa8p\x8e\x86\xe0\x01\x00\
    \x00w]\x00-\x9e\xc0G\x03{\xc64\xf2A\x0b@w\xa4\x91\x12B\xddN\x82\xef\xdcX/\x8a10\x11\x7f\
    \xf8=\xb7\xaaTa\x95}:-\xe5\x82\x0c\x0e\x0ck{\xc3Q\x05\x0c\xbe\xf8\x17\x8f\x0c\xbf\xa2\x03g\
    \xcb\xc5(a\xf0\xa8\x97\x86sB\xa4\xa4\x91\x02\x16\x94\x80\xbf/\xb5\x84W|!\xb5L\x00\x0b\xc3\
    \x1f\x81q\xdcO\xf4%\xa7\xf2\xe2\xb9\xaf(\xbbh\xa6\xbe\x04m)\x84\xad\xbb\xc0\xe7\xf7\xdaA\
    \xe13\x00\x00\x00(\xe0\xfa\xb3m\xb2N1\x00\x01\x93\x01\x81\x02\x00\x00\xb0\x9c\xa63\xb1\xc4\
    g\xfb\x02\x00\x00\x00\x00\x04YZ";

pub(crate) fn zstd() -> Vec<Vec<u8>> {
    vec![ZSTD.to_vec(), [ZSTD, b"\x50\x2a\x4d\x18\x02\0\0\0ab", ZSTD].concat()]
}

pub(crate) fn xz() -> Vec<Vec<u8>> {
    vec![XZ.to_vec(), [XZ, XZ].concat()]
}

/// Returns XProf profiles with a device, a host, and values of every type.
pub(crate) fn planes() -> Vec<Vec<u8>> {
    let values = [
        message(4, &[number(1, 1), number(4, 7)]),
        message(4, &[number(1, 2), message(5, &[b"size:64".to_vec()])]),
        message(4, &[number(1, 3), number(7, 2)]),
        message(4, &[number(1, 4), eight(2, 2.5_f64.to_bits())]),
    ]
    .concat();
    let event = |name, offset_ps, lasts_ps, values: &[u8]| {
        message(4, &[number(1, name), number(2, offset_ps), number(3, lasts_ps), values.to_vec()])
    };
    let name = |field, id, text: &str| {
        let named = message(2, &[number(1, id), message(2, &[text.as_bytes().to_vec()])]);
        message(field, &[number(1, id), named])
    };
    let plane = |title: &str, line: &str| {
        let events = [event(1, 1500, 9000, &values), event(2, 2000, 500, &[])].concat();
        let line = message(2, &[line.as_bytes().to_vec()]);
        message(
            1,
            &[
                number(1, 3),
                message(2, &[title.as_bytes().to_vec()]),
                message(3, &[number(1, 14), line, number(3, 5000), events]),
                name(4, 1, "MemcpyH2D"),
                name(4, 2, "train"),
                name(5, 1, "correlation_id"),
                name(5, 2, "memcpy_details"),
                name(5, 3, "step_name"),
                name(5, 4, "step_num"),
            ],
        )
    };
    let device = plane("/device:GPU:0", "Stream #14(Compute)");
    let operations = plane("/device:TPU:0", "XLA Ops");
    let host = plane("/host:CPU", "python");
    vec![
        [device, host.clone(), message(4, &[b"node".to_vec()])].concat(),
        [operations, host].concat(),
    ]
}

/// Returns Perfetto traces with every type of packet that is read.
pub(crate) fn packets() -> Vec<Vec<u8>> {
    let text = |field, text: &str| message(field, &[text.as_bytes().to_vec()]);
    let named = |field, id, name| message(field, &[number(1, id), text(2, name)]);
    let packet = |parts: &[Vec<u8>]| message(1, &[parts.concat(), number(10, 9)]);
    let snapshot = message(
        6,
        &[
            message(1, &[number(1, 6), number(2, 5000)]),
            message(1, &[number(1, 64), number(2, 10), number(3, 1), number(4, 100)]),
        ],
    );
    let interned =
        [named(1, 1, "kernel"), named(2, 1, "k"), named(3, 1, "grid"), named(24, 1, "s")];
    let list =
        message(4, &[number(1, 1), message(12, &[number(4, 3)]), message(12, &[number(2, 1)])]);
    let begin = [number(9, 1), number(11, 20), number(10, 1), number(3, 1), list, eight(47, 5)];
    let call = [number(9, 1), number(11, 10), text(22, "hip_api"), text(23, "hipLaunchKernel")];
    let noted = message(4, &[text(10, "corr_id"), number(3, 7)]);
    let all = [
        packet(&[snapshot, number(13, 1)]),
        packet(&[message(59, &[number(58, 64), message(11, &[number(11, 20)])])]),
        packet(&[number(8, 3), number(13, 2), message(12, &interned), message(11, &begin)]),
        packet(&[number(8, 4), number(13, 2), message(11, &[number(9, 2)])]),
        packet(&[number(8, 40), number(58, 6), message(11, &[call.concat(), noted])]),
        packet(&[number(8, 50), number(58, 6), message(11, &[number(9, 2), number(11, 10)])]),
        packet(&[number(8, 9), message(11, &[number(9, 4), number(11, 30), eight(44, 1)])]),
        packet(&[number(8, 9), message(53, &[number(2, 8), number(11, 1), number(14, 1)])]),
        packet(&[message(60, &[number(1, 10), message(4, &[number(1, 7), number(2, 8)])])]),
        packet(&[message(60, &[number(1, 20), text(2, "device 0, stream 7"), number(5, 10)])]),
        packet(&[message(60, &[number(1, 30), text(2, "free"), message(8, &[number(4, 2)])])]),
        packet(&[message(1, &[number(1, 1)])]),
    ]
    .concat();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
    zlib.write_all(&all).expect("memory takes everything");
    let deflated = zlib.finish().expect("memory takes everything");
    vec![all, packet(&[message(50, &[deflated])])]
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [variable(field << 3), variable(value)].concat()
}

fn eight(field: u64, value: u64) -> Vec<u8> {
    [variable(field << 3 | 1), value.to_le_bytes().to_vec()].concat()
}

fn message(field: u64, parts: &[Vec<u8>]) -> Vec<u8> {
    let whole = parts.concat();
    [variable(field << 3 | 2), variable(whole.len() as u64), whole].concat()
}

fn variable(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}
