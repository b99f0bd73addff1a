// SPDX-License-Identifier: Apache-2.0
/* Reading run_dir/cards.json. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "gpushare/cards.h"
#include "runtime/cards_file.h"

int cards_file_read(const char *run_dir, json_t **ret, struct gs_err *err)
{
	cleanup_close int dir = gs_dir_open(run_dir, NULL, err);
	cleanup_json json_t *file = NULL;
	int r = dir;

	if (dir >= 0)
		r = gs_json_read(dir, GS_CARDS_FILE, O_NOFOLLOW, GS_CARDS_MAX, &file, err);
	if (r == 0 && json_integer_value(json_object_get(file, "v")) != GS_CARDS_VERSION)
		r = gs_err_set(err, EINVAL, "it is of another version");
	if (r < 0)
		return gs_err_prefix(err, "%s/" GS_CARDS_FILE, run_dir);
	*ret = gs_steal(file);
	return 0;
}
