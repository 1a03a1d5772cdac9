import java.util.List;
import java.util.Map;

import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.com.google.protobuf.InvalidProtocolBufferException;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;

/** A broker's plugin that prints what clients push: a line "PUSHED client terminating labels name kind value attributes" for each number. */
public final class Pushed implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        String head = "PUSHED\t" + context.clientId() + "\t" + payload.clientInstanceId() + "\t" + payload.isTerminating();
        try {
            for (ResourceMetrics of : MetricsData.parseFrom(payload.data()).getResourceMetricsList()) {
                String labels = text(of.getResource().getAttributesList());
                for (ScopeMetrics scope : of.getScopeMetricsList()) {
                    for (Metric metric : scope.getMetricsList()) {
                        tell(head + "\t" + labels, metric);
                    }
                }
            }
        } catch (InvalidProtocolBufferException error) {
            System.out.println(head + "\tcannot be read: " + error.getMessage());
        }
    }

    private static void tell(String head, Metric metric) {
        boolean sum = metric.hasSum();
        String kind = sum ? metric.getSum().getAggregationTemporality() + "/" + metric.getSum().getIsMonotonic() : "GAUGE";
        List<NumberDataPoint> points = sum ? metric.getSum().getDataPointsList() : metric.getGauge().getDataPointsList();
        for (NumberDataPoint point : points) {
            String number = point.getAsDouble() + "\t" + text(point.getAttributesList());
            System.out.println(String.join("\t", head, metric.getName(), kind, number));
        }
    }

    private static String text(List<KeyValue> pairs) {
        StringBuilder found = new StringBuilder();
        for (KeyValue pair : pairs) {
            found.append(found.length() == 0 ? "" : ",").append(pair.getKey()).append('=').append(pair.getValue().getStringValue());
        }
        return found.toString();
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
    }

    @Override
    public void metricChange(KafkaMetric metric) {
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
    }

    @Override
    public void close() {
    }
}
