import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.concurrent.Executors;

/** An HTTP server with four threads: the path's number is how many times a request hashes 4 KiB, in new memory. */
final class Work {
    private static byte[] hash(int times) throws Exception {
        var kept = new ArrayList<byte[]>();
        for (int left = times; left > 0; --left) {
            kept.add(MessageDigest.getInstance("SHA-256").digest(new byte[4096]));
        }
        return kept.isEmpty() ? new byte[1] : kept.get(kept.size() - 1);
    }

    public static void main(String[] arguments) throws Exception {
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(arguments[0]));
        var server = HttpServer.create(address, 1024);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            try (exchange) {
                var digest = hash(Integer.parseInt(exchange.getRequestURI().getPath().substring(1)));
                exchange.getRequestBody().readAllBytes();
                exchange.sendResponseHeaders(200, digest.length);
                exchange.getResponseBody().write(digest);
            } catch (Exception error) {
                throw new java.io.IOException(error);
            }
        });
        server.start();
    }
}
