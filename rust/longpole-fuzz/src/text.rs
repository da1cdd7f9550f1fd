//! Extraction: the result does not depend on how the stream is divided, and is bounded.

use longpole_core::extract::{End, Extraction, Extractor, FORMATS};

/// Extracts from any bytes as the output of a program.
pub(crate) fn extract(bytes: &[u8]) {
    let whole = extracted(&[bytes]);
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    let cut = extracted(&[head, tail]);
    assert_eq!(format!("{:?}", whole.records), format!("{:?}", cut.records), "cut at a third");
    assert_eq!(whole.rejections.total(), cut.rejections.total());
    assert!(whole.records.len() <= bytes.len());
}

fn extracted(chunks: &[&[u8]]) -> Extraction {
    let mut extractor = Extractor::new(FORMATS, Vec::new());
    for chunk in chunks {
        extractor.feed(chunk);
    }
    extractor.finish(End::Died)
}
