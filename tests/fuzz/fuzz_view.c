// SPDX-License-Identifier: Apache-2.0
/*
 * The cluster's view. Input: what kubectl printed, and at the same time a node's picture. Whatever
 * it is: it is read or told to be none, and what is shown of it gives a terminal no orders.
 */
#include "common/buf.h"
#include "ctl/ctl.h"
#include "ctl/totals.h"
#include "ctl/view.h"
#include "ctl/yaml.h"
#include "tests/fuzz/fuzz.h"

#define NOW_MS 1796043600000LL

static void show(const struct view *view)
{
	cleanup_buf struct gs_buf text = { 0 };
	struct totals totals;
	json_t *json;

	totals_of(view, &totals);
	CHECK(!totals.n_tenants == !totals.n_pods);
	json = totals_json(&totals);
	yaml_add(&text, json);
	for (size_t i = 0; i < text.len; i++)
		CHECK(text.data[i] == '\n' || (unsigned char)text.data[i] >= 0x20);
	json_decref(json);
	totals_free(&totals);
	free(view_summary(view));
}

static void read_all(const char *text, size_t len)
{
	struct gs_err err = { 0 };
	struct view view;
	int r = view_read(text, len, NOW_MS, &view, &err);

	if (r < 0)
		check_error(r, &err);
	else
		show(&view);
	CHECK(r == 0 || !view.n);
	for (size_t i = 0; i < view.n; i++)
		CHECK(view.v[i].name && *view.v[i].name && view.v[i].age_ms >= -1);
	view_free(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = copy_input(data, size);
	struct gs_buf map = { 0 };

	read_all(copy, size);
	gs_buf_adds(&map, "{\"items\":[{\"metadata\":{\"name\":\"gpushare-node-n\"},\"data\":{"
			  "\"status.json\":");
	gs_buf_add_json(&map, copy);
	gs_buf_adds(&map, "}}]}");
	read_all(map.data, map.len);
	gs_buf_free(&map);
	free(copy);
	return 0;
}
