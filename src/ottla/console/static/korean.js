"use strict";
// The X-ray in Korean: its labels and the sentences of its boxes. Names of settings, states and parts stay Kafka's.

const KOREAN = {
  "X-ray": "엑스레이", "X-ray of ": "엑스레이: ",
  "The internals of a running consumer, producer or broker: each part as a box, live. It joins no group and does not disturb other clients.":
    "실행 중인 컨슈머, 프로듀서, 브로커의 내부입니다. 각 부분이 상자로, 실시간으로 보입니다. 어떤 그룹에도 참여하지 않고 누구도 방해하지 않습니다.",
  "How to trace a program": "프로그램 내부를 보려면",
  "Replay a recording": "녹화 다시 보기",
  "a saved file": "여기서 저장한 파일",
  "This console was started without a folder of traced programs.": "이 콘솔에는 추적할 프로그램의 폴더가 주어지지 않았습니다.",
  "client": "클라이언트", "kind": "종류", "process": "프로세스", "since (UTC)": "시작 (UTC)",
  "Pause": "일시 정지", "Continue": "계속", "Step back": "한 장면 뒤로", "Step": "한 장면 앞으로", "Save as file": "파일로 저장", "time": "시간",
  "Time line": "시간순 기록", "every event, including frequent ones": "잦은 것을 포함한 모든 이벤트",
  "The path of a record": "레코드가 지나는 길", "Group membership": "그룹 안에서의 자리", "Sequence numbers and transactions": "순번과 트랜잭션",
  "The parts of the broker": "브로커의 부분들", "no group is in memory": "메모리에 있는 그룹이 없습니다", "no request waits": "기다리는 요청이 없습니다", "no log is open": "열린 로그가 없습니다",
  "at rest": "쉬는 중", "no compacted log was checked yet": "아직 살펴본 압축 로그가 없습니다", "no other broker replicates the partitions of this one": "이 브로커가 리더인 파티션을 복제하는 브로커가 없습니다",
  "no request yet": "아직 요청이 없습니다", "and more: ": "그 밖에 더: ", "last rebalance: ": "마지막 리밸런스의 원인: ", "continues in": "다음 단계까지",
  "request": "요청", "requests": "요청 수", "waits for": "기다리는 것", "bytes missing": "모자라는 바이트", "since": "지난 시간", "at most for": "남은 시간", "log": "로그", "dirty": "압축 안 된 비율", "from": "기준",
  "connections": "개의 연결", "answers": "응답 수", "member": "멤버", "partitions": "파티션", "session expires in": "세션 만료까지", "leads": "리더", "follows": "팔로워", "epoch": "에포크", "generation": "세대",
  "index entries": "인덱스 항목", "active": "활성", "start": "시작", "stable": "안정 오프셋", "high watermark": "하이 워터마크", "end": "끝", "before": "개 더 앞에",
  "partition": "파티션", "broker": "브로커", "log end": "로그 끝", "behind": "뒤처짐", "for": "시간", "in sync": "동기화", "yes": "예", "no": "아니요",
  "what is this?": "이것은 무엇인가요?", "Setting: ": "설정: ",
};

const KOREAN_BOXES = {
  poll: "프로그램이 레코드를 요청하는 곳이며, 여기서 기다리는 동안 컨슈머는 보내고, 받고, 그룹 활동에 참여합니다. 한 번의 호출은 설정된 수까지만 레코드를 건네줍니다.",
  fetcher: "버퍼에 아무것도 없는 모든 파티션을 각 브로커에 요청하고, 받은 것을 다 쓰기 전에 다시 요청합니다. 브로커는 설정된 바이트가 모이거나 대기 시간이 끝나면 응답합니다.",
  unsent: "요청은 브로커와의 연결이 준비될 때까지 여기서 기다립니다. 계속 남아 있다면 브로커에 닿지 못하는 것이며, 설정된 간격 뒤에 다시 연결을 시도합니다.",
  inFlight: "보냈지만 아직 응답받지 못한 요청이며, 오래된 것이 먼저입니다. 새 레코드를 기다리는 Fetch는 고장이 아닙니다. 설정된 시간이 지나면 연결을 끊고 요청을 다시 시도합니다.",
  selector: "모든 연결을 한꺼번에 기다리며, 완성된 응답을 들여오고 요청을 내보냅니다. 설정은 시스템이 연결마다 얼마나 버퍼에 담아 두는지를 정합니다.",
  completed: "파티션별로 나뉜 브로커의 응답이 건네지기를 여기서 기다립니다. 응답 하나의 크기는 대략 설정된 바이트까지입니다.",
  records: "프로그램이 가진 것입니다. position은 다음에 읽을 오프셋이고, lag은 끝까지 남은 거리입니다. 커밋된 것이 없을 때 어디서 시작할지는 설정이 정합니다.",
  coordinator: "이 멤버를 그룹 안에 유지합니다. 그룹을 맡은 브로커를 찾고, 참여하고, 파티션을 받고, 오프셋을 커밋합니다. 설정은 클래식 프로토콜과, 브로커가 파티션을 나누는 KIP-848 프로토콜 가운데 하나를 고릅니다.",
  heartbeat: "프로그램이 무엇을 하든, 별도의 스레드가 이 멤버가 살아 있음을 코디네이터에 알립니다. 프로그램이 첫 번째 설정보다 오래 poll을 부르지 않으면, 다른 멤버들이 계속할 수 있도록 그룹을 떠납니다.",
  send: "프로그램이 레코드를 건네면 바로 배치에 담깁니다. 메모리가 이미 설정된 만큼 찼을 때에만 두 번째 설정의 시간까지 호출이 기다립니다.",
  accumulator: "배치는 파티션마다 하나씩 있는 큐에서 기다리고, 새 레코드는 가장 새로운 배치에 들어갑니다. 배치는 가득 차거나, 첫 레코드가 설정된 시간만큼 기다렸을 때 떠납니다.",
  sender: "별도의 스레드가 브로커마다 보낼 때가 된 것을 꺼내 보내고, 응답에 따라 마무리합니다. 다시 시도할 수 있는 것은 설정된 시간이 끝날 때까지 큐로 돌아갑니다.",
  produced: "보냈지만 아직 응답받지 못한 요청이며, 브로커마다 설정된 수까지입니다. 브로커는 acks가 요구하는 만큼의 복제본이 레코드를 가졌을 때 응답합니다.",
  transaction: "같은 배치가 두 번 쓰이지 않도록 배치에 번호를 매기고, transactional.id가 있으면 코디네이터에 트랜잭션의 시작과 끝을 요청합니다. 제한 시간보다 오래 열려 있는 트랜잭션은 중단됩니다.",
  groups: "이 브로커가 오프셋 파티션을 이끄는 그룹들을 관리합니다. 누가 들어 있는지, 각 멤버가 무엇을 기다리는지, 몇 번째 세대나 에포크인지를 압니다. 세션 동안 소식이 없는 멤버는 빠지고, 다른 멤버들이 그 파티션을 나눠 가집니다.",
  purgatory: "아직 응답할 수 없는 요청이 여기서 기다립니다. Fetch는 더 많은 바이트를, acks=all인 Produce는 복제를 기다립니다. 기다리던 것이 오거나 시간이 끝나면 다시 살펴봅니다.",
  logs: "파티션의 로그는 세그먼트가 이어진 것이며, 레코드는 마지막인 활성 세그먼트의 끝에 쓰입니다. 가득 찬 세그먼트는 닫히고 새 세그먼트가 시작되며, 오래된 것은 보존 기간에 따라 지워지거나 클리너가 줄입니다.",
  replicas: "다른 브로커들은 이 브로커가 이끄는 파티션을 Fetch로 복제합니다. 동기화된 모두가 가진 것은 하이 워터마크 아래에 있어 읽을 수 있고, 설정된 시간 동안 뒤처진 브로커는 동기화에서 빠집니다.",
  cleaner: "압축되는 토픽에서 키마다 마지막 레코드만 남깁니다. 아직 보지 않은 바이트의 비율이 설정을 넘는 로그 가운데 가장 큰 것을 고릅니다.",
  served: "브로커가 시작된 뒤 응답에 걸린 시간을 API별로 보여 줍니다. 백 개 가운데 그만큼이 표시된 시간 안에 끝났습니다. Fetch가 레코드를 기다린 시간도 들어 있습니다.",
};

const language = localStorage.getItem("language") ?? (navigator.language.startsWith("ko") ? "ko" : "en");
document.documentElement.lang = language;
const t = (text) => (language === "ko" && KOREAN[text]) || text;
const sentences = (box, text) => (language === "ko" && KOREAN_BOXES[box]) || text;

function otherLanguage() {
  const other = language === "ko" ? "en" : "ko";
  const button = document.createElement("button");
  button.type = "button";
  button.lang = other;
  button.textContent = other === "ko" ? "한국어로 보기" : "in English";
  button.addEventListener("click", () => { localStorage.setItem("language", other); location.reload(); });
  return button;
}
