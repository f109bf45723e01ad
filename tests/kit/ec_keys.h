/* A pair of keys on P-256 that only tests use, and a private key on another curve. */
#ifndef RV_TESTS_KIT_EC_KEYS_H
#define RV_TESTS_KIT_EC_KEYS_H

/* clang-format off */
#define EC_PRIVATE \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7nA2ZXSHOw1951lm\n" \
    "GlgoR68WSJyaF9O9C3L1+vp3VAOhRANCAAQZOAqwpIPJ3BJsDOIabfHRMnMI611u\n" \
    "s2Q5M+1DBEIGyaLh1BiuqeCrwVD/nz2+A2tIaFMRdcYZFtvX+I7NPX64\n" \
    "-----END PRIVATE KEY-----\n"
#define EC_SEC1_PRIVATE \
    "-----BEGIN EC PRIVATE KEY-----\n" \
    "MHcCAQEEIO5wNmV0hzsNfedZZhpYKEevFkicmhfTvQty9fr6d1QDoAoGCCqGSM49\n" \
    "AwEHoUQDQgAEGTgKsKSDydwSbAziGm3x0TJzCOtdbrNkOTPtQwRCBsmi4dQYrqng\n" \
    "q8FQ/589vgNrSGhTEXXGGRbb1/iOzT1+uA==\n" \
    "-----END EC PRIVATE KEY-----\n"
#define EC_PUBLIC \
    "-----BEGIN PUBLIC KEY-----\n" \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEGTgKsKSDydwSbAziGm3x0TJzCOtd\n" \
    "brNkOTPtQwRCBsmi4dQYrqngq8FQ/589vgNrSGhTEXXGGRbb1/iOzT1+uA==\n" \
    "-----END PUBLIC KEY-----\n"
#define EC_OTHER_CURVE \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDrwwn2mPJfoLkohdET\n" \
    "xM2M42rN+9UKMJRmSHcgdPIrSVkSoeu+xCUWgPHe0fmBmG2hZANiAAQPy1hhU84n\n" \
    "foV5BQv+9kAxpjXBuDhRPaJv55kAgkBVL5zHc1Pdbz3SjWuOoGVXblNmamaErwz+\n" \
    "YmDuOjiNc4nurVR6GtW/X5O3R9bhJBmGVgBG1WRwmbqZF25dUXMJX2U=\n" \
    "-----END PRIVATE KEY-----\n"
/* clang-format on */

#endif
