/** Generates mostly invalid HTTP requests to every operation, upload route and page. */
import fc from 'fast-check'
import { listOperations, restOperations } from '../../src/server/api.ts'
import { fitting, hostileValue, renderJson, withHostileValue } from './hostile-json.ts'
import { placeholderFor, type Resources, withIds } from './hostile-resources.ts'

/** The framing of a request's body; the last two values make the client stop early. */
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

export type Credential = 'none' | 'agent' | 'parent'

const none = () => Buffer.alloc(0)

/**
 * Valid inputs for the operations that agent keys use most, so that hostile values reach every part of these
 * inputs.
 */
const inputsForAgents: Readonly<Record<string, unknown>> = {
  'chat.completions': {
    model: 'mock',
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'x' }] },
      { role: 'user', content: 'x', name: 'x' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'x', type: 'function', function: { name: 'postMessage_x', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'x', content: 'x' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'postMessage_x', description: 'x', parameters: { type: 'object' } },
      },
    ],
    tool_choice: { type: 'allowed_tools', allowed_tools: { tools: [{ function: { name: 'x' } }] } },
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', schema: { type: 'object', properties: {} } },
    },
    stop: ['x'],
    user: 'x',
    n: 1,
    logit_bias: { 1: 1 },
  },
  'responses.create': {
    model: 'mock',
    instructions: 'x',
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x' }] },
      { type: 'function_call', call_id: 'x', name: 'postMessage_x', arguments: '{}' },
      { type: 'function_call_output', call_id: 'x', output: 'x' },
    ],
    tools: [{ type: 'function', name: 'postMessage_x', parameters: { type: 'object', properties: {} } }],
    text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object', properties: {} } } },
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low' },
    metadata: { x: 'x' },
  },
}

/** Every operation with a generator of inputs. */
const operations = listOperations().map(({ name, operation }) => {
  const prepared = inputsForAgents[name === 'chat.stream' ? 'chat.completions' : name]
  const input = fitting(operation.input)
  return { name, operation, input: prepared === undefined ? input : fc.oneof(fc.constant(prepared), input) }
})

type Operation = (typeof operations)[number]
type RestOperation = (typeof restOperations)[number]

const inputOf = new Map(operations.map(({ name, input }) => [name, input]))

function isFor(credential: Credential, callers: readonly string[]): boolean {
  return callers.length === 0 || callers.includes(credential)
}

/** Chooses a random item, more often one of the preferred items. */
function preferring<T>(list: readonly T[], isPreferred: (item: T) => boolean): fc.Arbitrary<T> {
  const preferred = list.filter(isPreferred)
  const all = fc.constantFrom(...list)
  return preferred.length === 0
    ? all
    : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...preferred) }, { weight: 1, arbitrary: all })
}

/** Generates an input for an operation, usually with one hostile value. */
function hostileInput(name: string): fc.Arbitrary<{ label: string; value: unknown }> {
  const place = fc.array(fc.nat(40), { minLength: 1, maxLength: 6 })
  return fc
    .record({
      input: inputOf.get(name) as fc.Arbitrary<unknown>,
      hostile: fc.option(fc.tuple(hostileValue, place), { nil: undefined, freq: 8 }),
    })
    .map(({ input, hostile }) => {
      const value = hostile === undefined ? input : withHostileValue(input, ...hostile)
      return { label: JSON.stringify(value)?.slice(0, 300) ?? 'undefined', value }
    })
}

const junk = [Buffer.from([0xff, 0xfe, 0x22]), Buffer.from('\ufeff'), Buffer.from('\0'), Buffer.from(']}]}')]

/**
 * Generates functions that damage a body: they truncate it or insert invalid bytes. Most leave it unchanged.
 */
const spoiling = fc.oneof(
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

const framing = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Framing>('length') },
  { weight: 4, arbitrary: fc.constantFrom<Framing>('chunked', 'tiny chunks', 'half-closed', 'reset') },
)

const long = (piece: string) => piece.repeat(Math.floor(12_000 / piece.length))
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
const headers = fc.oneof(
  { weight: 30, arbitrary: fc.constant([]) },
  { weight: 10, arbitrary: fc.array(header, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(500, 1_500).map((count) => Array<string>(count).fill('a: b')) },
)

const segment = fc.oneof(
  fc.constantFrom('x', 'mock', 'agent/x', '1', '%', '%ff', '%00', '..', '%2e%2e%2f', 'a'.repeat(9_000)),
  fc.uuid(),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
)
const isKnown = fc.oneof(
  { weight: 3, arbitrary: fc.constant(true) },
  { weight: 1, arbitrary: fc.constant(false) },
)
const query = fc.oneof(
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

/** Later requests with the parent key would fail after its rotation. */
function isAllowed(credential: Credential, name: string): boolean {
  return credential !== 'parent' || name !== 'keys.rotate'
}

/** Generates requests to REST operations, with JSON bodies or, where the operation accepts it, YAML. */
function restRequest(
  credential: Credential,
  of: readonly RestOperation[] = restOperations,
): fc.Arbitrary<HostileRequest> {
  const list = of.filter(({ name }) => isAllowed(credential, name))
  return preferring(list, ({ auth }) => isFor(credential, auth.callers)).chain(({ http, name, request }) =>
    fc
      .record({ input: hostileInput(name), segment, isKnown, query, headers, framing, spoiling })
      .map((given) => {
        const hasBody = http.method === 'POST' || http.method === 'PUT'
        const { yaml } = (given.input.value ?? {}) as { yaml?: unknown }
        const type = request?.upload !== undefined ? 'multipart/form-data; boundary=x' : 'application/json'
        const isYaml = yaml !== undefined && given.segment.length % 2 === 1
        return {
          calls: [`${http.method} ${http.path}`],
          label: `${name} ${hasBody ? given.input.label : ''}`,
          method: http.method,
          target:
            http.path.replaceAll(/\{(\w+)\}/g, (_all, field: string) => idOf(field, given)) + given.query,
          headers: [
            `Content-Type: ${isYaml ? 'application/yaml' : type}`,
            ...visitorOf(credential),
            ...given.headers,
          ],
          body: hasBody ? () => given.spoiling(toBody(isYaml ? yaml : given.input.value, isYaml)) : none,
          framing: given.framing,
        }
      }),
  )
}

function idOf(field: string, given: { readonly segment: string; readonly isKnown: boolean }): string {
  return (given.isKnown ? placeholderFor(field) : undefined) ?? given.segment
}

function visitorOf(credential: Credential): readonly string[] {
  return credential === 'agent' ? [`X-Parley-Visitor: ${placeholderFor('visitor')}`] : []
}

function toBody(value: unknown, isYaml: boolean): Buffer {
  const json = renderJson(value)
  // Sends the text of a JSON string as YAML, with its escapes, so that hostile texts remain short.
  const text = isYaml && json.startsWith('"') ? json.slice(1, -1).replaceAll('\\n', '\n') : json
  return Buffer.from(text)
}

/** superjson's annotations, which a client may send with an input. */
const meta = fc.constantFrom(
  ...['undefined', '{}', '[]', '"x"', '{"values":["undefined"]}', '{"values":{"a":["Date"],"x.y":["set"]}}'],
  '{"referentialEqualities":{"a":["b","c"]}}',
  `{"referentialEqualities":{${Array.from({ length: 9_000 }, (_, index) => `"messages":["${index}"]`).join()}}}`,
  `{"values":{${Array.from({ length: 9_000 }, (_, index) => `"a${index}":["undefined"]`).join()}}}`,
  `{"values":{"${'messages.0.'.repeat(20_000)}":["undefined"]}}`,
)

/** Generates tRPC calls and batches of calls. */
function trpcRequest(
  credential: Credential,
  of: readonly Operation[] = operations,
): fc.Arbitrary<HostileRequest> {
  const list = of.filter(({ name }) => isAllowed(credential, name))
  const one = preferring(list, ({ operation }) => isFor(credential, operation.auth.callers))
  return fc.array(one, { minLength: 1, maxLength: of.length === 1 ? 1 : 3 }).chain((calls) => {
    const inputs = fc.tuple(...calls.map(({ name }) => fc.record({ input: hostileInput(name), meta })))
    return fc.record({ inputs, headers, framing, spoiling, isBatch: fc.boolean() }).map((given) => {
      const isBatch = given.isBatch || calls.length > 1
      const names = calls.map(({ name }) => name).join()
      const isQuery = calls[0]?.operation.kind === 'query'
      const envelopes = given.inputs.map(({ input, meta }) => () => {
        const json = renderJson(input.value)
        return meta === 'undefined' ? `{"json":${json}}` : `{"json":${json},"meta":${meta}}`
      })
      const toText = () =>
        isBatch
          ? `{${envelopes.map((make, index) => `"${index}":${make()}`).join()}}`
          : (envelopes[0]?.() ?? '')
      const search = isBatch ? '?batch=1' : '?'
      return {
        calls: calls.map(({ name }) => `tRPC ${name}`),
        label: `trpc ${names} ${given.inputs.map(({ input, meta }) => `${input.label} ${meta.slice(0, 60)}`)}`,
        method: isQuery ? 'GET' : 'POST',
        target: isQuery
          ? `/trpc/${names}${search}&input=${encodeURIComponent(toText().slice(0, 4_000).toWellFormed())}`
          : `/trpc/${names}${search}`,
        headers: ['Content-Type: application/json', ...visitorOf(credential), ...given.headers],
        body: isQuery ? none : () => given.spoiling(Buffer.from(toText())),
        framing: given.framing,
      }
    })
  })
}

const uploadHeaders = fc
  .record(
    {
      'Tus-Resumable': fc.constantFrom('1.0.0', '0.2.0', ''),
      'Upload-Length': fc.constantFrom('10', '0', '-1', '1e3', '9'.repeat(30), '5368709120'),
      'Upload-Offset': fc.constantFrom('0', '5', '-1', 'x', '9'.repeat(30)),
      'Upload-Defer-Length': fc.constantFrom('1', '2'),
      'Upload-Metadata': fc.constantFrom(
        'filename eA==',
        'filename',
        ',',
        long('a eA==,'),
        `a ${long('A')}`,
        'id //',
      ),
      'Upload-Checksum': fc.constantFrom('sha1 AAAA', 'md5 x', long('a')),
      'X-HTTP-Method-Override': fc.constantFrom('PATCH', 'DELETE', 'x'),
      'Content-Type': fc.constantFrom('application/offset+octet-stream', 'x'),
    },
    { requiredKeys: ['Tus-Resumable'] },
  )
  .map((fields) => Object.entries(fields).map(([name, value]) => `${name}: ${value}`))

const uploadRequest: fc.Arbitrary<HostileRequest> = fc
  .record({
    method: fc.constantFrom('POST', 'PATCH', 'HEAD', 'DELETE', 'OPTIONS', 'GET'),
    path: fc.oneof(
      fc.constant('/upload'),
      segment.map((name) => `/upload/${name}`),
    ),
    own: uploadHeaders,
    headers,
    size: fc.constantFrom(0, 10, 70_000, 2_000_000),
    framing,
  })
  .map(({ method, path, own, headers, size, framing }) => ({
    calls: [],
    label: 'upload',
    method,
    target: path,
    headers: [...own, ...headers],
    body: method === 'POST' || method === 'PATCH' ? () => Buffer.alloc(size, 'x') : none,
    framing,
  }))

const pages = [
  ...[
    '/',
    '/healthz',
    '/health',
    '/readyz',
    '/metrics',
    '/openapi.json',
    '/agent-definition.schema.json',
    '/docs',
  ],
  ...[
    '/llms.txt',
    '/console',
    '/console/agents',
    '/console/assets/x',
    '/embed/frame',
    '/embed/frame?key=x',
    '/nothing',
  ],
  ...[
    '/embed/chat.js',
    '/embed/x.js',
    `/embed/frame?key=${long('a')}`,
    '/v1/x',
    '/artifacts/x/y/z',
    '/trpc',
    '/trpc/x,y',
  ],
  `/trpc/${long('a,')}`,
  `/console/${long('a/')}`,
]
const pageRequest: fc.Arbitrary<HostileRequest> = fc
  .record({
    method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'PROPFIND'),
    target: fc.constantFrom(...pages),
    headers,
    size: fc.constantFrom(0, 0, 0, 1_000_000),
    framing,
  })
  .map(({ size, ...given }) => ({ calls: [], label: 'page', ...given, body: () => Buffer.alloc(size, '[') }))

/** Generates requests for one kind of credential; `toBytes` adds the key. */
export function hostileRequest(credential: Credential): fc.Arbitrary<HostileRequest> {
  return fc.oneof(
    { weight: 5, arbitrary: restRequest(credential) },
    { weight: 5, arbitrary: trpcRequest(credential) },
    { weight: 1, arbitrary: uploadRequest },
    { weight: 1, arbitrary: pageRequest },
  )
}

/** Lists the names of all operations in each API as `calls` contains them. */
export function listCalls(): string[] {
  return [
    ...restOperations.map(({ http }) => `${http.method} ${http.path}`),
    ...listOperations().map(({ name }) => `tRPC ${name}`),
  ]
}

/**
 * Generates requests to every operation in each API: for each credential that the operation accepts, and without
 * one.
 */
export function listEveryCall(): {
  readonly credential: Credential
  readonly request: fc.Arbitrary<HostileRequest>
}[] {
  return operations.flatMap((operation) => {
    const { callers } = operation.operation.auth
    const rest = restOperations.filter(({ name }) => name === operation.name)
    const credentials = (['agent', 'parent'] as const).filter((one) =>
      callers.some((caller) => caller === one),
    )
    return (['none', ...credentials] as const)
      .filter((credential) => isAllowed(credential, operation.name))
      .flatMap((credential) => [
        ...rest.map((one) => ({ credential, request: restRequest(credential, [one]) })),
        { credential, request: trpcRequest(credential, [operation]) },
      ])
  })
}

/** Larger bodies contain no placeholders that have to be replaced. */
const MAX_FILLED_BYTES = 100_000

/** Renders a request as bytes; the request closes its connection unless its headers prevent that. */
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
