// SPDX-License-Identifier: Apache-2.0
/* Lists of cards, their names, and cards.json. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/card.h"
#include "agent/cards_json.h"
#include "agent/inventory_source.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/kmsg.h"
#include "common/xalloc.h"
#include "gpushare/cards.h"
#include "tests/unit/tmpdir.h"

static struct vendor_side side = { .name = (char *)"acme", .settle_ms = 500 };

static const char two[] =
	"[{\"id\":\"A/0\",\"uuid\":\"u\\\"0\",\"pci\":\"0000:03:00.0\",\"index\":0,"
	"\"select\":[\"u0\",\"0\"],\"nodes\":["
	"{\"path\":\"/dev/acme0\",\"major\":240,\"minor\":256,\"own\":true,\"hook\":true,"
	"\"revocable\":true},"
	"{\"path\":\"/dev/acmectl\",\"major\":240,\"minor\":255,\"own\":false,\"hook\":true}]},"
	"{\"id\":\"A_0\",\"nodes\":["
	"{\"path\":\"/dev/acme1\",\"major\":240,\"minor\":1,\"own\":true}]}]";

static int parse(const char *text, struct cards *ret, struct gs_err *err)
{
	cleanup_json json_t *list = json_loads(text, 0, NULL);

	assert_non_null(list);
	return vendor_source_parse_cards(&side, list, &ret->v, &ret->n, err);
}

static void finds_by_name_id_and_node(void **state)
{
	struct cards cards = { 0 };

	assert_int_equal(parse(two, &cards, NULL), 0);
	assert_int_equal(cards.n, 2);
	/* What can't be in a file's name is '_', and what is the same then has a number. */
	assert_string_equal(cards.v[0].name, "acme-A_0");
	assert_string_equal(cards.v[1].name, "acme-A_0+2");
	assert_ptr_equal(cards_find(&cards, "A/0"), &cards.v[0]);
	assert_ptr_equal(cards_find(&cards, "acme-A_0"), &cards.v[0]);
	assert_ptr_equal(cards_find(&cards, "A_0"), &cards.v[1]);
	assert_ptr_equal(cards_find(&cards, "acme-A_0+2"), &cards.v[1]);
	assert_null(cards_find(&cards, "A"));
	assert_ptr_equal(cards_of_dev(&cards, gs_kdev(240, 256)), &cards.v[0]);
	assert_ptr_equal(cards_of_dev(&cards, gs_kdev(240, 1)), &cards.v[1]);
	/* The control node is nobody's. */
	assert_null(cards_of_dev(&cards, gs_kdev(240, 255)));
	assert_int_equal(cards.v[0].settle_ms, 500);
	assert_int_equal(cards.v[1].index, -1);
	assert_null(cards.v[1].pci);
	cards_free(&cards);
	assert_int_equal(cards.n, 0);
}

static void equal_in_everything(void **state)
{
	/* Each changes one thing of the list above. */
	static const char *const changes[][2] = {
		{ "\"A/0\"", "\"A/1\"" },
		{ "u\\\"0", "u1" },
		{ "0000:03:00.0", "0000:04:00.0" },
		{ "\"index\":0", "\"index\":1" },
		{ "\"u0\",", "" },
		{ "\"u0\"", "\"u1\"" },
		{ "/dev/acme1", "/dev/acme2" },
		{ "\"minor\":1,", "\"minor\":2," },
		{ "\"own\":false", "\"own\":true" },
		{ "\"hook\":true,", "" },
		{ ",\"revocable\":true", "" },
	};
	struct cards a = { 0 };

	assert_int_equal(parse(two, &a, NULL), 0);
	for (size_t i = 0; i < GS_ARRAY_SIZE(changes); i++) {
		const char *at = strstr(two, changes[i][0]);
		cleanup_free char *text = NULL;
		struct cards b = { 0 };

		assert_non_null(at);
		text = gs_asprintf("%.*s%s%s", (int)(at - two), two, changes[i][1],
				   at + strlen(changes[i][0]));
		assert_int_equal(parse(text, &b, NULL), 0);
		if (cards_equal(a.v, a.n, b.v, b.n))
			fail_msg("%s is no change", changes[i][0]);
		cards_free(&b);
		assert_int_equal(parse(two, &b, NULL), 0);
		assert_true(cards_equal(a.v, a.n, b.v, b.n));
		assert_false(cards_equal(a.v, a.n, b.v, 1));
		cards_free(&b);
	}
	cards_free(&a);
}

static void rubbish_is_no_card(void **state)
{
	static const char *const wrong[] = {
		"[{}]",
		"[3]",
		"[{\"id\":\"\"}]",
		"[{\"id\":7}]",
		"[{\"id\":\"a\\u0001\"}]",
		"[{\"id\":\"a\"},{\"id\":\"a\"}]",
		"[{\"id\":\"a\",\"index\":-1}]",
		"[{\"id\":\"a\",\"select\":[\"\"]}]",
		"[{\"id\":\"a\",\"select\":[1]}]",
		"[{\"id\":\"a\",\"select\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\","
		"\"8\",\"9\"]}]",
		"[{\"id\":\"a\",\"nodes\":[{}]}]",
		"[{\"id\":\"a\",\"nodes\":[{\"path\":\"dev/x\",\"major\":1,\"minor\":1}]}]",
		"[{\"id\":\"a\",\"nodes\":[{\"path\":\"/dev/x\",\"major\":4096,\"minor\":1}]}]",
		"[{\"id\":\"a\",\"nodes\":[{\"path\":\"/dev/x\",\"major\":1,\"minor\":1048576}]}]",
		"{}",
	};
	cleanup_buf struct gs_buf many = { 0 };
	struct cards cards = { 0 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(wrong); i++) {
		struct gs_err err = { 0 };

		if (parse(wrong[i], &cards, &err) == 0)
			fail_msg("%s is taken", wrong[i]);
		assert_true(err.code);
	}
	gs_buf_adds(&many, "[{\"id\":\"");
	for (int i = 0; i < 129; i++)
		gs_buf_addc(&many, 'x');
	gs_buf_adds(&many, "\"}]");
	assert_true(parse(many.data, &cards, NULL) < 0);
	gs_buf_free(&many);
	for (int i = 0; i < 1025; i++)
		gs_buf_addf(&many, "%s{\"id\":\"%d\"}", i ? "," : "[", i);
	gs_buf_addc(&many, ']');
	assert_true(parse(many.data, &cards, NULL) < 0);
	assert_int_equal(cards.n, 0);
}

static int parse_load(const char *text, struct load *load)
{
	cleanup_json json_t *obj = json_loads(text, 0, NULL);

	assert_non_null(obj);
	return vendor_source_parse_load(obj, load, NULL);
}

static void loads(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"{\"at_ms\":-1}",
		"{\"at_ms\":1,\"busy\":\"1\"}",
		"{\"at_ms\":1,\"busy\":1.5}",
		"{\"at_ms\":1,\"busy\":-0.1}",
		"{\"at_ms\":1,\"memory_used\":-4}",
		"{\"at_ms\":1,\"memory_total\":0.5}",
		"{\"at_ms\":1,\"processes\":{}}",
		"{\"at_ms\":1,\"processes\":[1]}",
		"{\"at_ms\":1,\"processes\":[{\"pid\":0}]}",
		"{\"at_ms\":1,\"processes\":[{\"pid\":9999999999}]}",
		"{\"at_ms\":1,\"processes\":[{\"pid\":1,\"memory\":-1}]}",
	};
	struct load load = { 0 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(wrong); i++) {
		struct load other = { 0 };

		if (parse_load(wrong[i], &other) == 0)
			fail_msg("%s is taken", wrong[i]);
		free(other.processes);
	}
	assert_int_equal(parse_load("{\"at_ms\":5,\"busy\":0.5,\"memory_used\":7,\"processes\":"
				    "[{\"pid\":3,\"memory\":2},{\"pid\":4}]}",
				    &load),
			 0);
	assert_true(load.known && load.memory_known && load.processes_known);
	assert_true(load.busy == 0.5);
	assert_int_equal(load.memory_used, 7);
	assert_int_equal(load.memory_total, 0);
	assert_int_equal(load.at_ms, 5);
	assert_int_equal(load.processes_at_ms, 5);
	assert_int_equal(load.n_processes, 2);
	assert_int_equal(load.processes[0].memory, 2);
	/* Without a list the last one stays, with its time; a time to come is now. */
	assert_int_equal(parse_load("{\"at_ms\":999999999999999}", &load), 0);
	assert_false(load.known);
	assert_false(load.memory_known);
	assert_true(load.at_ms < 999999999999999);
	assert_int_equal(load.processes_at_ms, 5);
	assert_int_equal(load.n_processes, 2);
	free(load.processes);
}

static void file_of_all_cards(void **state)
{
	char *dir = tmpdir_make();
	struct cards cards = { 0 };
	struct gs_err err = { 0 };
	cleanup_json json_t *a = NULL;
	struct stat first, second;

	assert_int_equal(parse(two, &cards, &err), 0);
	assert_int_equal(inventory_cards_json(&cards, dir, &err), 0);
	assert_int_equal(stat(tmpdir_path(dir, "cards.json"), &first), 0);
	assert_int_equal(first.st_mode & 07777, 0600);
	assert_int_equal(gs_json_read(AT_FDCWD, tmpdir_path(dir, GS_CARDS_FILE), 0, GS_CARDS_MAX,
				      &a, &err),
			 0);
	assert_int_equal(json_integer_value(json_object_get(a, "v")), GS_CARDS_VERSION);
	{
		const json_t *list = json_object_get(a, "cards"), *card, *node;

		assert_int_equal(json_array_size(list), 2);
		card = json_array_get(list, 0);
		assert_string_equal(json_string_value(json_object_get(card, "name")), "acme-A_0");
		assert_string_equal(json_string_value(json_object_get(card, "id")), "A/0");
		assert_string_equal(json_string_value(json_object_get(card, "uuid")), "u\"0");
		assert_string_equal(json_string_value(json_object_get(card, "vendor")), "acme");
		assert_int_equal(json_integer_value(json_object_get(card, "settle_ms")), 500);
		assert_int_equal(json_array_size(json_object_get(card, "select")), 2);
		node = json_array_get(json_object_get(card, "nodes"), 0);
		assert_int_equal(json_integer_value(json_object_get(node, "major")), 240);
		assert_int_equal(json_integer_value(json_object_get(node, "minor")), 256);
		assert_true(json_is_true(json_object_get(node, "revocable")));
		node = json_array_get(json_object_get(card, "nodes"), 1);
		assert_true(json_is_false(json_object_get(node, "own")));
		card = json_array_get(list, 1);
		assert_null(json_object_get(card, "uuid"));
		assert_null(json_object_get(card, "index"));
	}
	/* Nothing new: nobody who watches the file is woken. */
	assert_int_equal(inventory_cards_json(&cards, dir, &err), 0);
	assert_int_equal(stat(tmpdir_path(dir, "cards.json"), &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	cards.v[0].index = 7;
	assert_int_equal(inventory_cards_json(&cards, dir, &err), 0);
	assert_int_equal(stat(tmpdir_path(dir, "cards.json"), &second), 0);
	assert_int_not_equal(first.st_ino, second.st_ino);
	assert_int_equal(tmpdir_count(dir, "."), 1);
	cards_free(&cards);
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_name_id_and_node), cmocka_unit_test(equal_in_everything),
		cmocka_unit_test(rubbish_is_no_card),	     cmocka_unit_test(loads),
		cmocka_unit_test(file_of_all_cards),
	};

	return cmocka_run_group_tests_name("card", tests, NULL, NULL);
}
