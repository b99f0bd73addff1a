// SPDX-License-Identifier: Apache-2.0
/*
 * Runtimes' configurations as gpusharectl setup reads and edits them. Whatever the text: each item
 * lies in it, an edit changes what it should and nothing else, and can be taken back.
 */
#include "ctl/setup.h"
#include "ctl/toml.h"
#include "tests/fuzz/fuzz.h"

static void check_items(const struct toml *doc)
{
	for (size_t i = 0; i < doc->n; i++) {
		const struct toml_item *item = &doc->items[i];
		struct gs_strv list = { 0 };

		CHECK(item->path[0] && item->line <= item->from && item->end <= doc->len);
		if (item->type == TOML_PARENT || item->type == TOML_DOTTED ||
		    item->type == TOML_ELEMENT)
			continue;
		CHECK(item->from < item->to && item->to <= item->end);
		CHECK(toml_find(doc, item->path) == item && toml_below(doc, item->path));
		CHECK((item->type == TOML_STRING) == (item->string != NULL));
		if (item->type == TOML_ARRAY)
			(void)toml_strings(doc, item, &list);
		gs_strv_free(&list);
	}
}

static void check_edit(const char *text)
{
	struct setup_file file = { .path = gs_strdup("/f"),
				   .before = gs_strdup(text),
				   .after = gs_strdup(text) };
	struct toml doc = { 0 };

	if (setup_set(&file, "a.b", "k", "\"v\"", NULL) == 0) {
		char *back = setup_unedit(file.after, &file.old, &file.new);

		/* Where what was put in stands there twice, nobody can say which is ours. */
		CHECK(!back || strcmp(back, text) == 0);
		free(back);
		/*
		 * A table that stands there in another form can't be opened again, and in an array
		 * of tables it is the last one's.
		 */
		if (setup_parse(&file, &doc, NULL) == 0) {
			CHECK(toml_below(&doc, "a[0]") || toml_below(&doc, "a.b[0]") ||
			      toml_is(&doc, "a.b.k", "\"v\""));
			toml_free(&doc);
		}
	}
	free(file.path);
	free(file.before);
	free(file.after);
	gs_strv_free(&file.old);
	gs_strv_free(&file.new);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = gs_strndup((const char *)data, size);
	struct toml doc = { 0 };

	if (toml_parse(text, strlen(text), &doc, NULL) == 0) {
		check_items(&doc);
		check_edit(text);
		toml_free(&doc);
	}
	free(text);
	return 0;
}
