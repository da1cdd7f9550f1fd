//! Properties of extraction that hold for any input: it ends, without a panic, and the result does
//! not depend on how the stream is divided into chunks.
//!
//! Seeded; the damaged text contains every format.

use longpole_core::extract::{End, Extraction, Extractor, FORMATS};

const LOG: &str = r#"[rank0] starting
OP:gemm<64, 64>,TIME:0.25,WS:1024
TIME:1.5
WS:4
=============================
  Problem ID: 1

       Operation: cutlass_simt_sgemm_nn
          Status: Success
     Disposition: Passed
       Arguments: --m=3456 --n=4096 \
                  --k=4096
           Bytes: 180355072  bytes
         Runtime: 6.73655  ms
            Math: 17218.4 GFLOP/s
Problem,Provider,OperationKind,Operation,Disposition,Status,m,Bytes,Runtime,GB/s
1,CUTLASS,gemm,cutlass_simt_sgemm_nn,passed,success,3456,180355072,6.73655,24.934
[0]:transA,transB,grouped_gemm,m,n,k,hipblaslt-Gflops,hipblaslt-GB/s,us
    T,N,0,106496,8,16384,1.30708e+06,234.327,21871.2
    --Solution index: 302128
transA,transB,M,N,K,rocblas-Gflops,us,us
N,T,7680,8192,8192, 10037.5, 102694, 7
#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
  1024  256  float  sum  -1  63896  134.44  235.26  N/A  63959  134.30  235.03  0
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","371693","sgemm<128, ""64"">","Duration","nsecond","406,240",
"ID","Kernel Name","gpu__time_duration.sum"
"","","usecond"
"1","gemm","1.5"
"#;

#[test]
fn damage_costs_rows_and_nothing_else() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..5_000 {
        let mut text = LOG.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            damage(&mut text, &mut random);
        }
        let whole = extract(&[&text]);
        let cut = random.below(text.len() + 1);
        let (head, tail) = text.split_at(cut);
        assert_eq!(
            fields(&extract(&[head, tail])),
            fields(&whole),
            "{:?}",
            String::from_utf8_lossy(&text)
        );
    }
}

#[test]
fn every_start_of_a_stream_holds_what_was_whole() {
    let whole = extract(&[LOG.as_bytes()]);
    assert_eq!((whole.records.len(), whole.rejections.total()), (10, 0));
    for end in 0..LOG.len() {
        let found = extract(&[&LOG.as_bytes()[..end]]);
        for row in 0..found.records.len() {
            let (time_ns, is_sound) =
                (found.records.time_ns[row], found.records.status[row].is_selectable());
            assert!(!is_sound || whole.records.time_ns.contains(&time_ns), "{time_ns} ns at {end}");
        }
    }
}

fn extract(chunks: &[&[u8]]) -> Extraction {
    let mut extractor = Extractor::new(FORMATS, Vec::new());
    for chunk in chunks {
        extractor.feed(chunk);
    }
    extractor.finish(End::Died)
}

/// Returns the whole result in comparable form; NaN times equal each other.
fn fields(found: &Extraction) -> impl PartialEq + std::fmt::Debug {
    let records = &found.records;
    let times: Vec<_> = records.time_ns.iter().map(|time_ns| time_ns.to_bits()).collect();
    let rejections = &found.rejections;
    let fields = &found.fields;
    (
        (times, records.offset.clone(), records.operation.clone(), records.status.clone()),
        (rejections.offset.clone(), rejections.reason.clone(), rejections.excerpt.clone()),
        (fields.record.clone(), fields.name.clone(), fields.value.clone()),
    )
}

/// Changes, removes, repeats or inserts bytes at one position.
fn damage(text: &mut Vec<u8>, random: &mut Random) {
    const ODD: &[u8] = b"\n\r\0\xff\"',:.-=#\\ 9eT";
    let start = random.below(text.len().max(1)).min(text.len().saturating_sub(1));
    let end = (start + random.below(60)).min(text.len());
    let piece = match random.below(4) {
        0 => Vec::new(),
        1 => text[start..end].repeat(2),
        2 => text[start..end].iter().rev().copied().collect(),
        _ => vec![ODD[random.below(ODD.len())]],
    };
    text.splice(start..end, piece);
}

/// xorshift64
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or_default()
    }
}
