// SPDX-License-Identifier: Apache-2.0
/* Specs, catalogues and sources out of texts, for the tests of the runtime's parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/specs.h"
#include "tests/unit/tmpdir.h"

const char acme_json[] =
	"{\"name\":\"acme\",\"title\":\"Acme\",\n"
	"\"nodes\":[{\"glob\":\"/dev/{zero,full,gone*}\",\"kind\":\"card\"},\n"
	"{\"glob\":\"/dev/random\",\"kind\":\"control\"},\n"
	"{\"glob\":\"/dev/urandom\",\"kind\":\"shared\"}],\n"
	"\"env\":[{\"name\":\"ACME_VISIBLE\",\"merge\":\"list\",\"selects\":true},\n"
	"{\"name\":\"ACME_CAPS\",\"merge\":\"list\"},\n"
	"{\"name\":\"ACME_MODE\",\"merge\":\"replace\"},\n"
	"{\"name\":\"ACME_ORDER\",\"merge\":\"local\"}],\n"
	"\"select_none\":[\"void\",\"none\",\"\"],\n"
	"\"mounts\":[{\"to\":\"/var/run/acme-devices/*\",\"from\":[\"/dev/null\"],"
	"\"selects\":true},\n"
	"\"/usr/lib/libacme*\"],\n"
	"\"hooks\":[\"*/acme-cdi-hook\",\"*/acme-next-hook\"],\n"
	"\"next\":{\"runtimes\":[\"acme-runtime\"],\"hooks\":[\"*/acme-next-hook\"]}}\n";

const char zeta_json[] =
	"{\"name\":\"zeta\",\"title\":\"Zeta\",\n"
	"\"nodes\":[{\"glob\":\"/dev/tty\",\"kind\":\"card\"}],\n"
	"\"env\":[{\"name\":\"ZETA_VISIBLE\",\"merge\":\"list\",\"selects\":true}],\n"
	"\"mounts\":[\"/usr/lib/libzeta*\"]}\n";

void spec_make(struct spec *ret, const char *json)
{
	struct gs_err err = { 0 };

	if (spec_read(ret, gs_strdup(json), strlen(json), &err) < 0)
		fail_msg("%s: %s", json, err.msg);
}

void catalogue_make(struct gs_catalogue *ret, const char *dir)
{
	char *path[] = { (char *)tmpdir_path(dir, "vendors.d") };
	const struct gs_strv dirs = { path, 1 };
	struct gs_err err = { 0 };

	tmpdir_write(dir, "vendors.d/acme.json", acme_json);
	tmpdir_write(dir, "vendors.d/zeta.json", zeta_json);
	if (gs_catalogue_load(ret, &dirs, &err) < 0)
		fail_msg("catalogue: %s", err.msg);
}

void source_make(struct source *ret, const char *name, const char *json,
		 const struct gs_catalogue *cat)
{
	cleanup_spec struct spec whole = { 0 };
	cleanup_slice struct slice slice = { 0 };
	struct gs_buf text = { 0 };
	struct gs_err err = { 0 };
	size_t len;

	spec_make(&whole, json);
	slice_find(&whole, cat, &slice);
	slice_text(&slice, &text);
	*ret = (struct source){ .name = gs_asprintf("ns/pod/%s", name), .same_pod = true };
	ret->record.id = gs_strdup(name);
	ret->record.identity =
		(struct gs_identity){ gs_strdup("ns"), gs_strdup("pod"), gs_strdup(name) };
	len = text.len;
	if (spec_read(&ret->spec, gs_buf_steal(&text), len, &err) < 0)
		fail_msg("slice of %s: %s", name, err.msg);
	slice_find(&ret->spec, cat, &ret->slice);
}

char *rewrite_make(const struct rewrite *rw)
{
	struct gs_buf out = { 0 };
	struct gs_err err = { 0 };
	struct js root;

	rewrite_text(rw, &out);
	if (js_parse(out.data, out.len, &root, &err) < 0)
		fail_msg("%s: %s", out.data, err.msg);
	return gs_buf_steal(&out);
}

void expect_words(const struct gs_err *err, ...)
{
	const char *word;
	va_list ap;

	va_start(ap, err);
	while ((word = va_arg(ap, const char *)) != NULL)
		if (!strstr(err->msg, word))
			fail_msg("\"%s\" does not say \"%s\"", err->msg, word);
	va_end(ap);
}
