// SPDX-License-Identifier: Apache-2.0
/* The webhook's certificate: made, renewed, its authority replaced without a moment of distrust. */
#include <errno.h>
#include <gnutls/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/xalloc.h"
#include "controller/certificate.h"

#define DAY ((time_t)24 * 3600)
#define NOW ((time_t)1800000000)

static struct gs_strv names;
static struct certificate cert;

static int setup(void **state)
{
	bool changed;

	gs_strv_add(&names, "gpushare-controller.gpushare-system.svc");
	assert_int_equal(certificate_renew(&cert, &names, NOW, &changed, NULL), 0);
	assert_true(changed);
	return 0;
}

static int teardown(void **state)
{
	gs_strv_free(&names);
	certificate_free(&cert);
	return 0;
}

/* Renews at @now; what changed: 0 nothing, 1 the chain, 2 the authority, 3 both. */
static int renewed(time_t now)
{
	struct certificate before = certificate_copy(&cert);
	bool changed;
	int what;

	assert_int_equal(certificate_renew(&cert, &names, now, &changed, NULL), 0);
	what = (strcmp(before.chain, cert.chain) != 0) +
	       2 * (strcmp(before.authorities, cert.authorities) != 0);
	assert_int_equal(changed, what != 0);
	certificate_free(&before);
	return what;
}

static unsigned int n_authorities(void)
{
	unsigned int n = 0;

	for (const char *c = cert.authorities; (c = strstr(c, "BEGIN")); c++)
		n++;
	return n;
}

/* Would somebody take it who trusts what we tell to trust? */
static bool trusted(const char *authorities, time_t now)
{
	gnutls_datum_t ca = { (void *)authorities, (unsigned int)strlen(authorities) };
	gnutls_datum_t pem = { (void *)cert.chain, (unsigned int)strlen(cert.chain) };
	gnutls_x509_crt_t *list, crt;
	unsigned int n, status = 1;

	assert_true(gnutls_x509_crt_list_import2(&list, &n, &ca, GNUTLS_X509_FMT_PEM, 0) >= 0);
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM), 0);
	assert_int_equal(gnutls_x509_crt_verify(crt, list, n, GNUTLS_VERIFY_DISABLE_TIME_CHECKS,
						&status),
			 0);
	assert_true(gnutls_x509_crt_check_hostname(crt, names.v[0]));
	if (now > gnutls_x509_crt_get_expiration_time(crt))
		status = 1;
	gnutls_x509_crt_deinit(crt);
	for (unsigned int i = 0; i < n; i++)
		gnutls_x509_crt_deinit(list[i]);
	gnutls_free(list);
	return status == 0;
}

static void test_first(void **state)
{
	struct certificate_shown *shown;

	assert_true(trusted(cert.authorities, NOW));
	assert_int_equal(n_authorities(), 1);
	assert_int_equal(certificate_end(&cert), NOW + CERTIFICATE_DAYS * DAY);
	assert_int_equal(renewed(NOW), 0);
	assert_int_equal(renewed(NOW + 59 * DAY), 0);
	assert_int_equal(certificate_show(&cert, &shown, NULL), 0);
	certificate_shown_free(shown);
}

static void test_renewed(void **state)
{
	assert_int_equal(renewed(NOW + 61 * DAY), 1);
	assert_int_equal(certificate_end(&cert), NOW + (61 + CERTIFICATE_DAYS) * DAY);
	assert_int_equal(renewed(NOW + 61 * DAY), 0);
	/* after everything has ended, all is made anew */
	assert_int_equal(renewed(NOW + 5000 * DAY), 3);
	assert_int_equal(n_authorities(), 1);
	assert_true(trusted(cert.authorities, NOW + 5000 * DAY));
}

/*
 * At every moment of ten years, what is shown is trusted by who has heard of the authorities an
 * hour ago.
 */
static void test_ten_years(void **state)
{
	char *known = gs_strdup(cert.authorities);
	unsigned int authorities = 0, chains = 0;

	for (time_t now = NOW; now < NOW + 3650 * DAY; now += 1800) {
		int what = now % (DAY / 2) == 0 || n_authorities() > 1 ? renewed(now) : 0;

		assert_true(what != 3);
		authorities += what == 2;
		chains += what == 1;
		if (what)
			assert_true(trusted(known, now));
		if (what == 0) {
			free(known);
			known = gs_strdup(cert.authorities);
		}
		if (n_authorities() > 1 && what == 0)
			now += DAY / 2 - now % (DAY / 2) - 1800;
	}
	free(known);
	assert_in_range(authorities, 4, 5);
	assert_in_range(chains, 60, 75);
}

static void test_broken(void **state)
{
	struct certificate_shown *shown;
	struct gs_err err;

	free(cert.key);
	cert.key = gs_strdup("-----BEGIN nothing");
	assert_int_equal(certificate_show(&cert, &shown, &err), -EINVAL);
	assert_int_equal(renewed(NOW), 1);
	/* a key of somebody else */
	free(cert.key);
	cert.key = gs_strdup(cert.authority_key);
	assert_int_equal(certificate_show(&cert, &shown, &err), -EINVAL);
	assert_int_equal(renewed(NOW), 1);
	/* another authority's certificate */
	free(cert.authorities);
	cert.authorities = gs_strdup(cert.chain);
	assert_int_equal(renewed(NOW), 3);
	free(cert.authority_key);
	cert.authority_key = NULL;
	assert_int_equal(renewed(NOW) & 2, 2);
	/* another name */
	free(names.v[0]);
	names.v[0] = gs_strdup("other.svc");
	assert_int_equal(renewed(NOW), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renewed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ten_years, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
