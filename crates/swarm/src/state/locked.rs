//! Locks with a rank. Code that holds several locks must take them in the order of their ranks,
//! which prevents deadlocks.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The rank of each lock. A thread that takes several locks must take them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    World,
    Tests,
    Proposals,
    Agents,
    Contracts,
    Tries,
}

/// A value behind a lock that is held only briefly, never across an `await`.
pub(crate) struct Locked<T> {
    rank: Rank,
    value: Mutex<T>,
}

impl<T> Locked<T> {
    pub fn new(rank: Rank, value: T) -> Self {
        let value = Mutex::new(value);
        Locked { rank, value }
    }

    /// Takes the lock. In debug builds, panics if the thread already holds this lock or a lock of a
    /// higher rank, because two threads that take locks in different orders can wait for each
    /// other.
    pub fn lock(&self) -> Guard<'_, T> {
        let held = HeldRank::enter(self.rank);
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { value, _held: held }
    }
}

/// The guard of a lock that is held.
pub(crate) struct Guard<'l, T> {
    value: MutexGuard<'l, T>,
    _held: HeldRank,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(debug_assertions)]
mod order {
    use super::Rank;
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    /// Records, until dropped, that the current thread holds a lock of this rank.
    pub(super) struct HeldRank(Rank);

    impl HeldRank {
        pub fn enter(rank: Rank) -> HeldRank {
            HELD.with_borrow_mut(|held| {
                let last = held.iter().max().copied();
                assert!(
                    last.is_none_or(|last| last < rank),
                    "the lock of {rank:?} is taken while that of {last:?} is held"
                );
                held.push(rank);
            });
            HeldRank(rank)
        }
    }

    impl Drop for HeldRank {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| held.retain(|rank| *rank != self.0));
        }
    }
}

#[cfg(not(debug_assertions))]
mod order {
    use super::Rank;

    /// Empty in release builds, which do not check the order of locks.
    pub(super) struct HeldRank;

    impl HeldRank {
        pub fn enter(_: Rank) -> HeldRank {
            HeldRank
        }
    }
}

use order::HeldRank;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_may_be_acquired_in_rank_order() {
        let world = Locked::new(Rank::World, 1);
        let agents = Locked::new(Rank::Agents, 2);
        let (first, second) = (world.lock(), agents.lock());
        assert_eq!(*first + *second, 3);
        drop((first, second));
        drop(agents.lock());
        drop(world.lock());
    }

    #[test]
    #[should_panic(expected = "the lock of World is taken while that of Some(Agents) is held")]
    fn acquiring_a_lower_ranked_lock_while_holding_a_higher_one_panics() {
        let world = Locked::new(Rank::World, 1);
        let agents = Locked::new(Rank::Agents, 2);
        let _later = agents.lock();
        let _earlier = world.lock();
    }

    #[test]
    #[should_panic(expected = "is held")]
    fn acquiring_a_held_lock_again_panics() {
        let world = Locked::new(Rank::World, 1);
        let _once = world.lock();
        let _twice = world.lock();
    }
}
