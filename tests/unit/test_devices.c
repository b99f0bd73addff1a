// SPDX-License-Identifier: Apache-2.0
/* Devices of cards: their names, and which ones a container gets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/devices.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* The words of @text. */
static struct gs_strv words(const char *text)
{
	cleanup_free char *copy = gs_strdup(text);
	struct gs_strv list = { 0 };
	char *save = NULL;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		gs_strv_add(&list, word);
	return list;
}

static void prefers(const char *available, const char *must, size_t size, const char *want)
{
	struct plugin_wish wish = { words(available), words(must), size };
	cleanup_strv struct gs_strv got = { 0 };
	cleanup_free char *text = NULL;
	struct gs_err err = { 0 };
	int code = devices_prefer(&wish, &got, &err);

	text = gs_strv_join(&got);
	assert_string_equal(code < 0 ? err.msg : text, want);
	assert_int_equal(code < 0 ? got.n : 0, 0);
	gs_strv_free(&wish.available);
	gs_strv_free(&wish.must);
}

static void names(void **state)
{
	cleanup_free char *name = NULL;
	struct gs_err err = { 0 };
	char card[PLUGIN_ID_MAX + 1];

	assert_int_equal(devices_name("GPU-1", 12, &name, &err), 0);
	assert_string_equal(name, "GPU-1::12");
	assert_int_equal(devices_card(name), 5);
	assert_int_equal(devices_card("GPU-1"), 5);
	assert_int_equal(devices_card("a::b::0"), 4);
	assert_int_equal(devices_card("a:::0"), 2);
	assert_int_equal(devices_number("GPU-1::0"), 0);
	assert_int_equal(devices_number("a::b::17"), 17);
	assert_int_equal(devices_number("GPU-1"), -1);
	assert_int_equal(devices_number("GPU-1::"), -1);
	assert_int_equal(devices_number("GPU-1::x"), -1);
	assert_int_equal(devices_number("GPU-1::-1"), -1);
	assert_int_equal(devices_number("GPU-1::99999"), -1);
	(void)memset(card, 'x', sizeof(card));
	card[PLUGIN_ID_MAX - 3] = '\0';
	free(gs_steal(name));
	assert_int_equal(devices_name(card, 1, &name, &err), 0);
	assert_int_equal(strlen(name), PLUGIN_ID_MAX);
	assert_int_equal(devices_name(card, 10, &name, &err), -ENAMETOOLONG);
}

static void from_different_cards(void **state)
{
	prefers("a::0 a::1 b::0 b::1", "", 2, "a::0,b::0");
	/* A card that is half taken comes first, and the whole one stays whole. */
	prefers("a::0 a::1 b::1", "", 1, "b::1");
	prefers("c::0 c::1 a::0 a::1 b::1", "", 2, "b::1,a::0");
	prefers("a::0 a::1", "", 2, "2 different cards are asked for, and 1 have a free device");
	/* Cards whose names begin alike are two. */
	prefers("a::0 ab::0", "", 2, "a::0,ab::0");
	/* Whole cards. */
	prefers("b a", "", 2, "a,b");
	prefers("b", "", 2, "2 different cards are asked for, and 1 have a free device");
}

static void what_must_be(void **state)
{
	prefers("a::0 a::1 b::0 b::1", "a::1", 2, "a::1,b::0");
	prefers("a::0 a::1 b::0 b::1", "b::1", 1, "b::1");
	prefers("a::0 a::1 b::0", "a::0 a::1", 2, "two of one card must be in the choice");
}

static void apart(void **state)
{
	struct gs_strv list = words("a::0 b::0 c");
	struct gs_err err = { 0 };

	assert_int_equal(devices_apart(&list, &err), 0);
	gs_strv_add(&list, "b::7");
	assert_int_equal(devices_apart(&list, &err), -ENOSPC);
	assert_string_equal(err.msg, "b::0 and b::7 are of the same card");
	gs_strv_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(from_different_cards),
		cmocka_unit_test(what_must_be),
		cmocka_unit_test(apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
