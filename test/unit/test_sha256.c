/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sha256: SHA-256 and HMAC against published vectors (FIPS 180-4's examples, RFC 4231 with keys zero-padded to 32 bytes, as the
 * construction does), for all splits of the input.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

static const char *hex(const unsigned char *bytes)
{
    static char text[65];

    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return text;
}

static const char *digest_of(const char *text, size_t count, size_t step)
{
    unsigned char digest[32];
    weft_sha256 sha;

    weft_sha256_begin(&sha);
    for (size_t at = 0; at < count; at += step)
        weft_sha256_add(&sha, text + at, count - at < step ? count - at : step);
    weft_sha256_end(&sha, digest);
    return hex(digest);
}

static void published(void)
{
    static char million[1000000];
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    memset(million, 'a', sizeof million);
    CU_ASSERT_STRING_EQUAL(digest_of("", 0, 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CU_ASSERT_STRING_EQUAL(digest_of("abc", 3, 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CU_ASSERT_STRING_EQUAL(digest_of(two, 56, 56), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CU_ASSERT_STRING_EQUAL(digest_of(million, sizeof million, 4096), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void any_split(void)
{
    char text[300], whole[65];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 37);
    for (size_t count = 0; count <= sizeof text; count++) {
        strcpy(whole, digest_of(text, count, sizeof text));
        for (size_t step = 1; step < 130; step += 9)
            CU_ASSERT_STRING_EQUAL_FATAL(digest_of(text, count, step), whole);
    }
}

static const char *code_of(const unsigned char *key, size_t key_bytes, const char *text)
{
    unsigned char full[32] = {0}, code[32];
    weft_hmac hmac;

    memcpy(full, key, key_bytes);
    weft_hmac_begin(&hmac, full);
    weft_hmac_add(&hmac, text, strlen(text));
    weft_hmac_end(&hmac, code);
    return hex(code);
}

static void keyed(void)
{
    unsigned char key[20];

    memset(key, 0x0b, sizeof key);
    CU_ASSERT_STRING_EQUAL(code_of(key, 20, "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CU_ASSERT_STRING_EQUAL(code_of((const unsigned char *)"Jefe", 4, "what do ya want for nothing?"),
                           "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void compared(void)
{
    CU_ASSERT_TRUE(weft_bytes_equal("abcd", "abcd", 4));
    CU_ASSERT_FALSE(weft_bytes_equal("abcd", "abce", 4));
    CU_ASSERT_FALSE(weft_bytes_equal("abcd", "bbcd", 4));
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("sha256", NULL, NULL);
    CU_add_test(suite, "published vectors", published);
    CU_add_test(suite, "any split of the input", any_split);
    CU_add_test(suite, "HMAC", keyed);
    CU_add_test(suite, "comparison", compared);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}
