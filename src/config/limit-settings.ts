/** Defines the settings for limits, uploads, timeouts and conversations. */
import { egressTargetList, flag, integer, oneOf, seconds, timeZone, usdAmount } from './values.ts'

const limit = () => integer(0, 1_000_000_000)
const TEBIBYTE = 1024 ** 4

export const limits = {
  PARLEY_RATE_LIMIT_PARENT: limit()
    .prefault('600')
    .describe('Maximum number of requests per minute with one parent key.'),
  PARLEY_RATE_LIMIT_AGENT: limit()
    .prefault('120')
    .describe('Maximum number of requests per minute with one agent key.'),
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: limit()
    .prefault('60')
    .describe('Maximum number of requests per minute with one agent key from one client IP address.'),
  PARLEY_RATE_LIMIT_UPLOAD_TOKEN: limit()
    .prefault('600')
    .describe('Maximum number of requests per minute with the upload token of one artifact.'),
  PARLEY_RATE_LIMIT_AUTH_FAILURES: limit()
    .prefault('30')
    .describe('Maximum number of failed authentications per minute from one client IP address.'),
  PARLEY_MAX_STREAMS_PARENT: limit()
    .prefault('50')
    .describe('Maximum number of concurrent streams with one parent key.'),
  PARLEY_MAX_STREAMS_AGENT: limit()
    .prefault('64')
    .describe('Maximum number of concurrent streams with one agent key.'),
  PARLEY_MAX_STREAMS_ADDRESS: limit()
    .prefault('16')
    .describe(
      'Maximum number of concurrent streams from one client IP address with one agent key, or with the tokens of one artifact.',
    ),
  PARLEY_MAX_BODY_BYTES: integer(1024, 268_435_456)
    .prefault('20971520')
    .describe('Maximum body size of a chat or embeddings request, in bytes.'),
  PARLEY_MAX_BODY_BYTES_AGENT: integer(1024, 268_435_456)
    .prefault('2097152')
    .describe(
      'Maximum body size of a request with an agent key, in bytes. PARLEY_MAX_BODY_BYTES applies too. Raise this limit if visitors send large attachments.',
    ),
  PARLEY_MAX_FILE_BYTES: integer(1, TEBIBYTE).prefault('2147483648').describe('Maximum file size, in bytes.'),
  PARLEY_MAX_UPLOAD_BYTES: integer(1, TEBIBYTE)
    .prefault('5368709120')
    .describe('Maximum upload size, in bytes.'),
  PARLEY_MAX_AGENTS: limit().prefault('1000').describe('Maximum number of agents per parent key.'),
  PARLEY_BUDGET_OUTPUT_TOKENS: integer(16, 1_000_000)
    .prefault('4096')
    .describe('Maximum number of tokens in an answer under a budget, if the request sets no limit.'),
  PARLEY_BUDGET_MIN_OUTPUT_TOKENS: integer(1, 1_000_000)
    .prefault('256')
    .describe(
      'Minimum number of tokens in an answer under a budget. If the budget has fewer tokens left, the server rejects the call, unless the request asks for fewer.',
    ),
  PARLEY_BUDGET_WAIT_SECONDS: integer(0, 60)
    .prefault('5')
    .describe(
      'Maximum time that a call waits while other calls have reserved the rest of a budget, in seconds.',
    ),
  PARLEY_BUDGET_DEFAULT_AGENT_USD: usdAmount()
    .optional()
    .describe('Daily budget in US dollars that each new agent gets (docs/budgets.md). No budget by default.'),
  PARLEY_BUDGET_TIMEZONE: timeZone()
    .prefault('UTC')
    .describe('Time zone in which the days, weeks and months of budgets begin.'),
  PARLEY_STORAGE_QUOTA_BYTES: integer(0, 1024 * TEBIBYTE)
    .prefault('53687091200')
    .describe('Maximum total size of the files and artifacts of one parent key, in bytes.'),
}

export const uploads = {
  PARLEY_UPLOAD_FSYNC: flag()
    .prefault('true')
    .describe(
      'Set to false to acknowledge upload data before it is on disk. This is faster, but a power failure can lose acknowledged data.',
    ),
  PARLEY_UPLOAD_EXPIRY_SECONDS: integer(60, 31_536_000)
    .prefault('86400')
    .describe('Seconds after which the server deletes an unfinished upload that receives no data.'),
  PARLEY_CONVERSION_TRIES: integer(1, 10)
    .prefault('3')
    .describe(
      'Maximum number of attempts to convert an upload. If all fail, the server serves the original file.',
    ),
  PARLEY_CONVERSION_MEMORY_BYTES: integer(536_870_912, TEBIBYTE)
    .prefault('2147483648')
    .describe('Memory limit for one conversion, in bytes (docs/conversion.md).'),
}

export const times = {
  PARLEY_BACKEND_CONNECT_SECONDS: seconds()
    .prefault('5')
    .describe('Maximum time to connect to the model provider.'),
  PARLEY_BACKEND_FIRST_BYTE_SECONDS: seconds()
    .prefault('60')
    .describe("Maximum time until the first byte of the provider's response, per attempt."),
  PARLEY_BACKEND_FIRST_EVENT_SECONDS: seconds()
    .prefault('120')
    .describe(
      "Maximum time until the first event of the provider's response, for all attempts together. A model with a fallback can use at most half of the remaining time.",
    ),
  PARLEY_BACKEND_IDLE_SECONDS: seconds()
    .prefault('60')
    .describe('Maximum time between two chunks of a streamed provider response.'),
  PARLEY_BACKEND_TOTAL_SECONDS: seconds()
    .prefault('600')
    .describe(
      'Maximum total time for a provider response that is not streamed. A model with a fallback can use at most half of the remaining time.',
    ),
  PARLEY_STREAM_MAX_SECONDS: seconds()
    .prefault('900')
    .describe('Maximum total time for a stream to a client.'),
  PARLEY_TOOL_SECONDS: seconds().prefault('30').describe('Maximum time for one call of a server tool.'),
  PARLEY_HEARTBEAT_SECONDS: seconds()
    .prefault('15')
    .describe('Idle time after which the server sends a comment on a stream to keep the connection open.'),
  PARLEY_BODY_SECONDS: seconds().prefault('30').describe('Maximum total time to receive a JSON body.'),
  PARLEY_BODY_IDLE_SECONDS: seconds()
    .prefault('10')
    .describe('Maximum time between two chunks of a request body.'),
  PARLEY_UPLOAD_IDLE_SECONDS: seconds()
    .prefault('60')
    .describe(
      'Maximum time between two chunks of an upload. When it expires, the server closes the request and keeps the data received so far.',
    ),
  PARLEY_CONVERSION_SECONDS: seconds()
    .prefault('600')
    .describe('Maximum time for one conversion of an upload.'),
  PARLEY_SHUTDOWN_SECONDS: seconds()
    .prefault('25')
    .describe('Time that open requests have to finish after the server receives SIGTERM or SIGINT.'),
}

const DAY_LIMIT = 3650

export const conversations = {
  PARLEY_CONVERSATIONS: oneOf('allowed', 'forbidden')
    .prefault('allowed')
    .describe(
      'Whether agents may store conversations. With `forbidden`, the server stores nothing new; stored conversations remain readable until they expire.',
    ),
  PARLEY_CONVERSATIONS_MAX_DAYS: integer(1, DAY_LIMIT)
    .prefault('365')
    .describe('Maximum number of days for which an agent may store conversations.'),
  PARLEY_CONVERSATIONS_MAX_BYTES: integer(0, 1024 * TEBIBYTE)
    .prefault('10737418240')
    .describe('Maximum total size of the stored conversations of one parent key, in bytes; 0 is unlimited.'),
  PARLEY_STORE_WITHOUT_AGENT: oneOf('off', 'on_request', 'default')
    .prefault('off')
    .describe(
      'Which turns without an agent the server stores. `off`: none. `on_request`: turns with `store: true`. `default`: as in the OpenAI API, responses without `store: false` and chat completions with `store: true`.',
    ),
  PARLEY_STORE_WITHOUT_AGENT_DAYS: integer(1, DAY_LIMIT)
    .prefault('30')
    .describe('Number of days for which conversations without an agent are stored.'),
  PARLEY_REPLAY_HOURS: integer(0, 168)
    .prefault('24')
    .describe('Number of hours for which the events of a completed turn can be streamed again.'),
  PARLEY_FLUSH_MS: integer(50, 2000)
    .prefault('250')
    .describe('Maximum number of milliseconds until a streamed event is stored.'),
  PARLEY_MAX_FOLLOWERS_PARENT: limit()
    .prefault('200')
    .describe(
      'Maximum number of conversations that clients can follow at the same time with one parent key.',
    ),
  PARLEY_MAX_FOLLOWERS_AGENT: limit()
    .prefault('1000')
    .describe(
      'Maximum number of conversations that visitors can follow at the same time with one agent key.',
    ),
  PARLEY_MAX_FOLLOWERS_ADDRESS: limit()
    .prefault('20')
    .describe(
      'Maximum number of conversations that visitors can follow at the same time from one client IP address with one agent key.',
    ),
  PARLEY_RECONNECT_SECONDS: integer(0, 60)
    .prefault('10')
    .describe(
      'Seconds for which a stored turn continues after its client disconnects, if the agent sets `onDisconnect: cancel`.',
    ),
  PARLEY_WEBHOOKS: oneOf('allowed', 'forbidden')
    .prefault('allowed')
    .describe('Whether tenants can create webhooks and the server delivers events (docs/webhooks.md).'),
  PARLEY_WEBHOOK_ALLOW: egressTargetList()
    .optional()
    .describe(
      'Hosts and address ranges outside of the public Internet that tenants may use for webhooks, for the key sets that verify visitors (jwksUrl) and for the page check in the console. URLs on these hosts may use http and any port.',
    ),
}
