// What the library was built from, and which of its levels this processor runs.

#include <cstdint>

extern "C" const char *lattend_source() { return SOURCE; }

// 2: AVX-512, 1: AVX2 with FMA, 0: plain.
extern "C" int64_t lattend_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide) return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}
