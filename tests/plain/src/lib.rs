//! Nothing: the tests of this package are programs that plain cargo builds, without the pass.
