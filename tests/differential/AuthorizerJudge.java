import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Answers questions by Apache Kafka's own authorizer: fields with tabs between them, a line each; "1" is yes. */
public class AuthorizerJudge {
    private record Asker(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "X"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "c"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        StandardAuthorizer authorizer = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] said = line.split("\t", -1);
            switch (said[0]) {
                case "NEW" -> authorizer = make(said[1]);
                case "ACL" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromString(said[1]), said[2], PatternType.fromString(said[3]), said[4], said[5],
                    AclOperation.fromString(said[6]), AclPermissionType.fromString(said[7])));
                default -> out.append(answer(authorizer, said) ? "1\n" : "0\n");
            }
        }
        System.out.print(out);
    }

    private static StandardAuthorizer make(String allowEveryone) {
        StandardAuthorizer made = new StandardAuthorizer();
        made.withPluginMetrics(new PluginMetricsImpl(new Metrics(), new HashMap<>()));
        made.configure(Map.of("node.id", "0", "allow.everyone.if.no.acl.found", allowEveryone));
        made.completeInitialLoad();
        return made;
    }

    private static boolean answer(StandardAuthorizer authorizer, String[] said) throws IOException {
        String[] who = said[1].split(":", 2);
        Asker asker = new Asker(new KafkaPrincipal(who[0], who[1]), InetAddress.getByName(said[2]));
        AclOperation operation = AclOperation.fromString(said[3]);
        ResourceType kind = ResourceType.fromString(said[4]);
        if (said[0].equals("ANY")) {
            return authorizer.authorizeByResourceType(asker, operation, kind) == AuthorizationResult.ALLOWED;
        }
        ResourcePattern resource = new ResourcePattern(kind, said[5], PatternType.LITERAL);
        return authorizer.authorize(asker, List.of(new Action(operation, resource, 1, true, true)))
            .get(0) == AuthorizationResult.ALLOWED;
    }
}
