// SPDX-License-Identifier: Apache-2.0
/* What an answer that is not good says: HTTP's number and the message of a Status object. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/impl.h"
#include "common/xalloc.h"

static int errno_of(long status)
{
	switch (status) {
	case 400:
	case 422:
		return EINVAL;
	case 401:
	case 403:
		return EACCES;
	case 404:
		return ENOENT;
	case 409:
		return EEXIST;
	case 410:
		return ESTALE;
	case 413:
		return E2BIG;
	case 429:
		return EBUSY;
	default:
		return status >= 500 ? EIO : EPROTO;
	}
}

void kube_status(const struct kube_request *req, long status, struct kube_answer *ret,
		 char **ret_message)
{
	const char *what = status < 400 ? " (a redirect is not followed)" : "";
	struct js body, member = { 0 };

	*ret_message = NULL;
	if (req->said.len > 0 && js_parse(req->said.data, req->said.len, &body, NULL) == 0 &&
	    js_member(body, "message", &member, NULL) == 0)
		*ret_message = js_string(member);
	if (!*ret_message)
		*ret_message = gs_strdup("");
	ret->status = status;
	ret->message = *ret_message;
	ret->r = gs_err_set(&ret->err, errno_of(status),
			    "%s %.*s: the API server answers %ld%s%s%s", req->method,
			    (int)strcspn(req->path, "?"), req->path, status, what,
			    **ret_message ? ": " : "", *ret_message);
}
