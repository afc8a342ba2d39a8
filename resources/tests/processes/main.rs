//! Commands as the host runs them: argument vectors, surroundings, ends. Run as root; what must hold without root runs again
//! as nobody.

mod ends;
mod lines;
mod output;
mod speed;
mod support;
mod surroundings;
