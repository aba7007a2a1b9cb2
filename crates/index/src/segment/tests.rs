use super::super::facts::FileFacts;
use super::*;
use starling_syntax::FilePath;

const CART: &str = "class Cart:\n    '''Holds items.'''\n    def add(self, item):\n        self.items.append(item)\n\ndef add(a, b):\n    return a + b\n";
const USER: &str = "from cart import Cart\nCart().add(1)\n";

fn facts() -> Vec<FileFacts> {
    let texts = [("shop/cart.py", CART), ("shop/user.py", USER)];
    let read = |(path, text): (&str, &str)| FileFacts::read(FilePath::new(path), text.into());
    texts.into_iter().map(read).collect()
}

#[test]
fn segment_returns_the_facts_that_were_written() {
    let segment = Segment::of(&facts());
    assert_eq!((segment.file_count(), segment.symbol_count()), (2, 5));
    let cart = segment.file(0);
    assert_eq!(cart.path, "shop/cart.py");
    assert_eq!(cart.hash, hash_of(CART));
    assert_eq!(cart.bytes as usize, CART.len());
    assert_eq!(segment.file(1).first_symbol, 4);
    let add = segment.symbol(2);
    assert_eq!((add.name, add.kind), ("Cart.add", SymbolKind::Method));
    assert_eq!((add.parent, add.lines), (Some(1), (3, 4)));
    assert_eq!(add.signature, "def add(self, item):");
    assert_eq!(segment.symbol(1).doc, "Holds items.");
    assert_eq!(segment.symbol(4).file, 1);
    assert_eq!(segment.symbol(4).parent, None);
}

#[test]
fn segment_finds_symbols_by_term_and_files_by_identifier() {
    let facts = facts();
    let segment = Segment::of(&facts);
    for (file, facts) in facts.iter().enumerate() {
        let first = segment.file(file as u32).first_symbol;
        for (place, symbol) in facts.symbols.iter().enumerate() {
            for (term, counts) in &symbol.terms {
                let found = segment
                    .postings(*term)
                    .find(|(number, _)| *number == first + place as u32);
                assert_eq!(found.map(|(_, counts)| counts), Some(*counts));
            }
        }
    }
    assert_eq!(segment.postings(Term::of("nowhere")).count(), 0);
    assert_eq!(segment.called("add").collect::<Vec<_>>(), [2, 3]);
    assert_eq!(segment.called("append").count(), 0);
    assert_eq!(segment.mentioning("Cart").collect::<Vec<_>>(), [0, 1]);
    assert_eq!(segment.mentioning("append").collect::<Vec<_>>(), [0]);
    assert_eq!(segment.mentioning("").count(), 0);
    assert_eq!(segment.mentioning("Holds").count(), 0);
}

#[test]
fn stored_segment_is_read_back_and_a_damaged_one_is_rejected() {
    let segment = Segment::of(&facts());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segment");
    let open = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Segment::open(&File::open(&path).unwrap())
    };
    let written = write(&facts());
    let stored = open(&written).unwrap();
    assert_eq!(stored.symbol(2).name, segment.symbol(2).name);
    assert_eq!(stored.bytes(), segment.bytes());

    for place in (0..written.len()).step_by(7) {
        let mut broken = written.clone();
        broken[place] ^= 0x10;
        assert!(open(&broken).is_err(), "byte {place}");
    }
    for length in [
        0,
        3,
        size_of::<Header>() - 1,
        size_of::<Header>(),
        written.len() - 1,
    ] {
        assert!(open(&written[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn segment_of_no_files_is_empty() {
    let segment = Segment::of(&[]);
    assert_eq!((segment.file_count(), segment.symbol_count()), (0, 0));
    assert_eq!(segment.mentioning("x").count(), 0);
}
