//! The one registry of systems. A system that is added here is under every test, benchmark and
//! report.

use super::{BTree, Description, Mu, Placement, Vm, VmOw, Wandering};

/// Something to do with a system that is chosen by name.
pub trait Visitor {
    /// What it answers.
    type Output;

    /// Does it with the system `S`.
    fn visit<S: Placement + 'static>(self) -> Self::Output;
}

macro_rules! registry {
    ($($system:ty),+ $(,)?) => {
        /// Every system, in the order in which programs list them.
        pub const SYSTEMS: &[Description] = &[$(<$system>::DESCRIPTION),+];

        /// Does `visitor`'s work with the system named `key`, if there is one.
        pub fn visit<V: Visitor>(key: &str, visitor: V) -> Option<V::Output> {
            $(if key == <$system>::DESCRIPTION.key {
                return Some(visitor.visit::<$system>());
            })+
            None
        }
    };
}

/// The name of the system with this number on the medium ([`Description::code`]), if there is one.
pub fn key_of(code: u8) -> Option<&'static str> {
    SYSTEMS.iter().find(|system| system.code == code).map(|system| system.key)
}

registry![Wandering, Mu, BTree, Vm, VmOw];
