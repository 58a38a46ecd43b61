//! The registry of systems: every test, benchmark and report covers all of them.

use core::fmt;

use super::{BTree, Mu, MuStar, Rosette, RosetteNor, Tnc, Vm, VmOw, Wandering, Wpcb};
use crate::engine::System;
use crate::error::OpenError;

/// An action that runs with a system selected by its key.
pub trait Visitor {
    /// The result of the action.
    type Output;

    /// Runs the action with the system `S`.
    fn visit<S: System + 'static>(self) -> Self::Output;
}

/// Makes a registry of systems, the types that are listed.
///
/// Each is a type that implements [`System`], as each
/// [`Placement`](crate::store::Placement) does. The registry is the constant `SYSTEMS` and the
/// functions `visit` and `key_of`, as those of [`nandina::store`](crate::store). A program that has
/// stores of its own makes one that lists them beside those of the library.
///
/// ```
/// use nandina::store::{Mu, VmOw};
///
/// nandina::registry![Mu, VmOw];
///
/// assert_eq!(SYSTEMS.len(), 2);
/// assert_eq!(key_of(2), Some("mu"));
/// ```
#[macro_export]
macro_rules! registry {
    ($($system:ty),+ $(,)?) => {
        /// Every system, in the order in which programs list them.
        pub const SYSTEMS: &[$crate::engine::Description] =
            &[$(<$system as $crate::engine::System>::DESCRIPTION),+];

        /// Runs `visitor` with the system whose key is `key`, if there is one.
        pub fn visit<V: $crate::store::Visitor>(key: &str, visitor: V) -> Option<V::Output> {
            $(if key == <$system as $crate::engine::System>::DESCRIPTION.key {
                return Some(visitor.visit::<$system>());
            })+
            None
        }

        /// The key of the system with this number on the medium, if there is one.
        ///
        /// The number is `Description::code`.
        pub fn key_of(code: u8) -> Option<&'static str> {
            SYSTEMS.iter().find(|system| system.code == code).map(|system| system.key)
        }
    };
}

registry![Wandering, Mu, BTree, Vm, VmOw, Wpcb, Rosette, RosetteNor, Tnc, MuStar];

/// It is here because the message names systems.
impl<E: fmt::Display> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message(f, key_of)
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for OpenError<E> {}
