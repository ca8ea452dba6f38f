/* civetweb's own access log calls localtime(), which is no function for several threads. There is none. */
static void
log_access(const struct mg_connection *conn)
{
	(void)conn;
}
