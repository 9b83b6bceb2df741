/** Generates the HTTP parts of hostile requests (headers, paths, framing), and renders requests as bytes. */
import fc from 'fast-check'
import { type Resources, withIds } from './hostile-resources.ts'

/** The framing of a body; with the last two values, the client ends the connection before the body ends. */
type Framing = 'length' | 'chunked' | 'tiny chunks' | 'half-closed' | 'reset'

export interface HostileRequest {
  /** The operations that the request calls, each after the name of its API. */
  readonly calls: readonly string[]
  readonly label: string
  readonly method: string
  readonly target: string
  readonly headers: readonly string[]
  readonly body: () => Buffer
  readonly framing: Framing
}

export const none = () => Buffer.alloc(0)

const junk = [Buffer.from([0xff, 0xfe, 0x22]), Buffer.from('\ufeff'), Buffer.from('\0'), Buffer.from(']}]}')]

/** Generates functions that truncate a body, insert invalid bytes or, most often, return it unchanged. */
export const spoiling = fc.oneof(
  { weight: 8, arbitrary: fc.constant((body: Buffer) => body) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.nat(1_000), fc.constantFrom(...junk)).map(([at, bytes]) => (body: Buffer) => {
      const place = Math.floor((body.length * at) / 1_000)
      return Buffer.concat([body.subarray(0, place), bytes, body.subarray(place)])
    }),
  },
  {
    weight: 1,
    arbitrary: fc.nat(1_000).map((at) => (body: Buffer) => body.subarray(0, (body.length * at) / 1_000)),
  },
)

export const framing = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Framing>('length') },
  { weight: 4, arbitrary: fc.constantFrom<Framing>('chunked', 'tiny chunks', 'half-closed', 'reset') },
)

export const long = (piece: string) => piece.repeat(Math.floor(12_000 / piece.length))
const headerValues = [
  ...[
    '',
    'x',
    '*/*',
    'text/event-stream',
    'application/jsonl',
    '100-continue',
    'bytes=0-0',
    'null',
    '1',
    '-1',
  ],
  ...['application/json', 'application/yaml', 'text/markdown', 'multipart/form-data; boundary=x', '1e9'],
  ...['"a", W/"b", *', 'sha1 AAAA', 'filename eA==,kind eA==', 'respond-async', '9'.repeat(400), '\xff\xfe'],
  ...[
    long('a'),
    long(','),
    long(', a'),
    long('"a",'),
    long('0-1,'),
    long(' '),
    long('a='),
    long('a b;'),
    long('('),
  ],
]
const headerNames = [
  ...[
    'Accept',
    'Accept-Encoding',
    'Access-Control-Request-Headers',
    'Content-Encoding',
    'Content-Type',
    'Cookie',
  ],
  ...[
    'Expect',
    'If-Match',
    'If-None-Match',
    'Idempotency-Key',
    'Origin',
    'Prefer',
    'Range',
    'If-Range',
    'Referer',
  ],
  ...[
    'Tus-Resumable',
    'Upload-Checksum',
    'Upload-Concat',
    'Upload-Defer-Length',
    'Upload-Length',
    'X-Request-Id',
  ],
  ...[
    'Upload-Metadata',
    'Upload-Offset',
    'X-Forwarded-For',
    'X-HTTP-Method-Override',
    'trpc-accept',
    'traceparent',
  ],
  ...['Authorization', 'Host', 'Sec-Fetch-Site', 'Transfer-Encoding', 'X-Requested-With'],
]
const header = fc
  .record({ name: fc.constantFrom(...headerNames), value: fc.constantFrom(...headerValues) })
  .map(({ name, value }) => `${name}: ${value}`)
export const headers = fc.oneof(
  { weight: 30, arbitrary: fc.constant([]) },
  { weight: 10, arbitrary: fc.array(header, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(500, 1_500).map((count) => Array<string>(count).fill('a: b')) },
)

export const segment = fc.oneof(
  fc.constantFrom('x', 'mock', 'agent/x', '1', '%', '%ff', '%00', '..', '%2e%2e%2f', 'a'.repeat(9_000)),
  fc.uuid(),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
)
export const isKnown = fc.oneof(
  { weight: 3, arbitrary: fc.constant(true) },
  { weight: 1, arbitrary: fc.constant(false) },
)
export const query = fc.oneof(
  { weight: 2, arbitrary: fc.constant('') },
  {
    weight: 1,
    arbitrary: fc
      .dictionary(
        fc.constantFrom('limit', 'after', 'before', 'order', 'from', 'group_by', 'token', 'key', 'x'),
        fc.oneof(fc.constantFrom('0', '1', '-1', '9'.repeat(15), 'x', '2026-01-01', '\0'), segment),
      )
      .map((fields) => `?${new URLSearchParams(fields)}`),
  },
  { weight: 1, arbitrary: fc.constantFrom(`?${long('a&')}`, `?${long('%')}`, `?token=${long('a.')}`) },
)

/** The maximum size of a body whose placeholders are replaced. */
const MAX_FILLED_BYTES = 100_000

/** Renders a request as bytes; it closes its connection unless its generated headers prevent that. */
export function toBytes(request: HostileRequest, key: string | undefined, resources: Resources): Buffer {
  const { method, framing } = request
  const [target = '', ...headers] = [request.target, ...request.headers].map((text) =>
    withIds(text, resources),
  )
  const generated = request.body()
  const body =
    generated.length > MAX_FILLED_BYTES
      ? generated
      : Buffer.from(withIds(generated.toString('latin1'), resources), 'latin1')
  const isChunked = framing === 'chunked' || framing === 'tiny chunks'
  const missingBytes = framing === 'half-closed' || framing === 'reset' ? 100 : 0
  const hasBody = body.length > 0 || missingBytes > 0
  const head = [
    `${method} ${target} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    ...headers,
    ...(isChunked ? ['Transfer-Encoding: chunked'] : []),
    ...(!isChunked && hasBody ? [`Content-Length: ${body.length + missingBytes}`] : []),
  ].join('\r\n')
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), isChunked ? toChunks(body, framing) : body])
}

/** Splits a body into chunks of 64 KiB, or of one byte for `tiny chunks`. */
function toChunks(body: Buffer, framing: Framing): Buffer {
  const size = framing === 'tiny chunks' ? 1 : 65_536
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size)
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
  }
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}
