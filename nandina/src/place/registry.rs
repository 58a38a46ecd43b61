//! The registry of systems: every test, benchmark and report covers all of them.

use super::{BTree, Description, Mu, Placement, Vm, VmOw, Wandering};

/// An action that runs with a system selected by its key.
pub trait Visitor {
    /// The result of the action.
    type Output;

    /// Runs the action with the system `S`.
    fn visit<S: Placement + 'static>(self) -> Self::Output;
}

macro_rules! registry {
    ($($system:ty),+ $(,)?) => {
        /// Every system, in the order in which programs list them.
        pub const SYSTEMS: &[Description] = &[$(<$system>::DESCRIPTION),+];

        /// Runs `visitor` with the system whose key is `key`, if there is one.
        pub fn visit<V: Visitor>(key: &str, visitor: V) -> Option<V::Output> {
            $(if key == <$system>::DESCRIPTION.key {
                return Some(visitor.visit::<$system>());
            })+
            None
        }
    };
}

/// The key of the system with this number on the medium, if there is one.
///
/// The number is [`Description::code`].
pub fn key_of(code: u8) -> Option<&'static str> {
    SYSTEMS.iter().find(|system| system.code == code).map(|system| system.key)
}

registry![Wandering, Mu, BTree, Vm, VmOw];
