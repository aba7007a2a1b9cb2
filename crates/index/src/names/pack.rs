//! Serializes occurrences compactly. Each is encoded by its difference from the previous one, so
//! most take four bytes.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::{Occurrence, Role, ScopeId};
use super::table::NameId;

/// The roles by their codes in the serialized form.
const ROLES: [Role; 12] = [
    Role::Read,
    Role::Call,
    Role::Store,
    Role::Delete,
    Role::Definition,
    Role::Parameter,
    Role::Keyword,
    Role::ImportedModule,
    Role::ImportedName,
    Role::Alias,
    Role::Export,
    Role::Declared,
];
const ROLE: u8 = 0x0f;
/// Flag: the scope differs from that of the previous occurrence and is encoded.
const SCOPE: u8 = 0x10;
/// Flag: the receiver is the previous occurrence.
const CHAINED: u8 = 0x20;
/// Flag: the receiver is encoded by its number.
const RECEIVER: u8 = 0x40;

pub(super) fn serialize<S: Serializer>(list: &[Occurrence], to: S) -> Result<S::Ok, S::Error> {
    pack(list).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Occurrence>, D::Error> {
    let bytes = <Vec<u8>>::deserialize(from)?;
    unpack(&bytes).ok_or_else(|| D::Error::custom("the occurrences end too early"))
}

fn pack(list: &[Occurrence]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(list.len() * 4 + 4);
    put(&mut bytes, list.len() as u32);
    let (mut at, mut scope) = (0, ScopeId::MODULE);
    for (index, found) in list.iter().enumerate() {
        let is_chained = found.receiver != 0 && found.receiver == chained(index);
        let code = ROLES
            .iter()
            .position(|role| *role == found.role)
            .unwrap_or(0) as u8;
        bytes.push(
            code | if found.scope == scope { 0 } else { SCOPE }
                | match (is_chained, found.receiver) {
                    (true, _) => CHAINED,
                    (false, 0) => 0,
                    (false, _) => RECEIVER,
                },
        );
        put(&mut bytes, found.at.wrapping_sub(at));
        put(&mut bytes, found.name.0);
        if found.scope != scope {
            put(&mut bytes, found.scope.0);
        }
        if !is_chained && found.receiver != 0 {
            put(&mut bytes, found.receiver);
        }
        (at, scope) = (found.at, found.scope);
    }
    bytes
}

/// Returns the encoded receiver that refers to the occurrence before `index`.
fn chained(index: usize) -> u32 {
    (index as u32) * 2
}

fn unpack(bytes: &[u8]) -> Option<Vec<Occurrence>> {
    let mut rest = bytes;
    let count = take(&mut rest)? as usize;
    // An occurrence takes at least three bytes, so a corrupt count cannot cause a large allocation.
    let mut list = Vec::with_capacity(count.min(bytes.len() / 3));
    let (mut at, mut scope) = (0u32, ScopeId::MODULE);
    for index in 0..count {
        let (code, after) = rest.split_first()?;
        rest = after;
        at = at.wrapping_add(take(&mut rest)?);
        let name = NameId(take(&mut rest)?);
        if code & SCOPE != 0 {
            scope = ScopeId(take(&mut rest)?);
        }
        let receiver = match (code & CHAINED != 0, code & RECEIVER != 0) {
            (true, _) => chained(index),
            (false, true) => take(&mut rest)?,
            (false, false) => 0,
        };
        list.push(Occurrence {
            at,
            name,
            scope,
            role: *ROLES.get((code & ROLE) as usize)?,
            receiver,
        });
    }
    Some(list)
}

fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_occurrences() -> Vec<Occurrence> {
        let one = |at, name, scope, role, receiver| Occurrence {
            at,
            name: NameId(name),
            scope: ScopeId(scope),
            role,
            receiver,
        };
        vec![
            one(3, 0, 0, Role::Definition, 0),
            one(500, 200, 7, Role::Read, 0),
            one(505, 1, 7, Role::Call, 4),
            one(70_000, 1, 2, Role::Keyword, 1),
            one(70_010, 90_000, 2, Role::ImportedName, 77),
        ]
    }

    #[test]
    fn packed_occurrences_are_unpacked_unchanged() {
        assert_eq!(
            unpack(&pack(&sample_occurrences())),
            Some(sample_occurrences())
        );
        assert_eq!(unpack(&pack(&[])), Some(Vec::new()));
    }

    #[test]
    fn unpacking_truncated_or_corrupt_bytes_returns_none() {
        let bytes = pack(&sample_occurrences());
        for end in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..end]), None, "{end}");
        }
        assert_eq!(unpack(&[0xff; 9]), None);
    }
}
