/** Generates mostly invalid HTTP requests to every operation, upload route and page. */
import fc from 'fast-check'
import { listOperations, restOperations } from '../../src/server/api.ts'
import {
  framing,
  type HostileRequest,
  headers,
  isKnown,
  long,
  none,
  query,
  segment,
  spoiling,
} from './hostile-http.ts'
import { fitting, hostileValue, renderJson, withHostileValue } from './hostile-json.ts'
import { placeholderFor } from './hostile-resources.ts'

export type Credential = 'none' | 'agent' | 'parent'

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

/** Excludes the rotation of the parent key, after which later requests with the key would fail. */
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
  // For YAML, sends the content of the JSON string, in which only the escapes of line breaks are decoded.
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
 * Lists request generators: one for each operation, each API that offers it, and each credential that it
 * accepts; also one without a credential.
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
