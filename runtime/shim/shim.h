// What the C++ files of the shim share.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>

// A C handle of torch-sys: an at::Tensor of its own on the heap.
using Handle = at::Tensor *;

// Runs `body` and turns an exception into its text, which the caller frees. Null on success. Rust must never see a
// C++ exception.
template <class Body>
char *guarded(Body &&body) {
  try {
    body();
    return nullptr;
  } catch (const c10::Error &error) {
    return strdup(error.what_without_backtrace());
  } catch (const std::exception &error) {
    return strdup(error.what());
  } catch (...) {
    return strdup("an unknown C++ exception");
  }
}
