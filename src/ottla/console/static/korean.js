"use strict";
// The X-ray in Korean: its labels and the sentences of its boxes. Names of settings, states and parts stay Kafka's.

const KOREAN = {
  "X-ray": "엑스레이", "X-ray of ": "엑스레이: ",
  "The inside of a consumer or producer that runs: each part as a box, live. It joins no group and disturbs nobody.":
    "실행 중인 컨슈머나 프로듀서의 내부입니다. 각 부분이 상자로, 실시간으로 보입니다. 어떤 그룹에도 참여하지 않고 누구도 방해하지 않습니다.",
  "How a program lets you look": "프로그램 내부를 보려면",
  "Replay a recording": "녹화 다시 보기",
  "a file that was saved here": "여기서 저장한 파일",
  "This console was given no folder of traced programs.": "이 콘솔에는 추적할 프로그램의 폴더가 주어지지 않았습니다.",
  "client": "클라이언트", "kind": "종류", "process": "프로세스", "since (UTC)": "시작 (UTC)",
  "Pause": "일시 정지", "Go on": "계속", "Step back": "한 장면 뒤로", "Step": "한 장면 앞으로", "Save as file": "파일로 저장", "time": "시간",
  "Time line": "시간순 기록", "every event, the frequent ones too": "잦은 것을 포함한 모든 이벤트",
  "The way of a record": "레코드가 지나는 길", "The place in the group": "그룹 안에서의 자리", "Numbers and transactions": "순번과 트랜잭션",
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
