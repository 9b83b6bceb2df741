/** Tests that an invalid definition is rejected, and that the error gives the position of the mistake. */
import { describe, expect, test } from 'vitest'
import { listIds, rawYamlTypes, sendDefinition } from '../../support/agents.ts'
import { type Answer, GREETER, startApp } from '../../support/app.ts'

const invalid: readonly (readonly [what: string, text: string, names: readonly string[]])[] = [
  ['empty text', '', ['line 1', 'column 1']],
  ['a list', '- name: X\n', ['line 1', 'column 1']],
  ['an unclosed YAML string', 'name: X\ninstructions: "open\n', ['line ', 'column ']],
  ['no name', 'instructions: Hi\n', ['name: is required', 'line 1, column 1']],
  ['no instructions', 'name: X\n', ['instructions: is required', 'line 1, column 1']],
  ['a blank name', 'instructions: Hi\nname: "  "\n', ['name:', 'line 2, column 7']],
  ['blank instructions', 'name: X\ninstructions: " "\n', ['instructions:', 'line 2, column 15']],
  ['a name that is a number', 'name: 7\ninstructions: Hi\n', ['name:', 'line 1, column 7']],
  ['a temperature that is too high', `${GREETER}temperature: 2.1\n`, ['temperature:', 'line 3, column 14']],
  [
    'conversation settings without a duration',
    `${GREETER}conversations: {}\n`,
    ['conversations.keep:', 'line 3, column '],
  ],
  [
    'an invalid duration',
    `${GREETER}conversations: { keep: 30 }\n`,
    ['conversations.keep:', 'line 3, column '],
  ],
  [
    'a duration above ten years',
    `${GREETER}conversations: { keep: 3651d }\n`,
    ['conversations.keep: must be 1 to 3650 days', 'line 3, column '],
  ],
  [
    'an unknown key in the conversation settings',
    `${GREETER}conversations: { keep: 30d, kept: 1d }\n`,
    ["has an unknown key 'kept'", 'line 3, column '],
  ],
  [
    'an unknown policy for disconnects',
    `${GREETER}conversations: { keep: 30d, onDisconnect: stay }\n`,
    ['conversations.onDisconnect:', 'line 3, column '],
  ],
  [
    'an unknown visitor permission',
    `${GREETER}conversations: { keep: 30d, visitor: { read: true } }\n`,
    ["conversations.visitor: has an unknown key 'read'", 'line 3, column '],
  ],
  [
    'a visitor permission that is not a boolean',
    `${GREETER}conversations:\n  keep: 30d\n  visitor: { list: maybe }\n`,
    ['conversations.visitor.list: must be true or false', 'line 5, column 20'],
  ],
  [
    'an unknown key in handover',
    `${GREETER}conversations: { keep: 30d, handover: { buttons: true } }\n`,
    ["conversations.handover: has an unknown key 'buttons'", 'line 3, column '],
  ],
  [
    'a handover timeout above seven days',
    `${GREETER}conversations:\n  keep: 30d\n  handover: { timeout: 8d }\n`,
    ['conversations.handover.timeout: must be at most 7 days', 'line 5, column 24'],
  ],
  [
    'a blank handover text',
    `${GREETER}conversations: { keep: 30d, handover: { whenNobody: " " } }\n`,
    ['conversations.handover.whenNobody: must not be blank', 'line 3, column '],
  ],
  [
    'a tool named request_person',
    `${GREETER}conversations: { keep: 30d, handover: {} }\ntools:\n  - name: request_person\n`,
    ['tools[0].name: must not be request_person', 'line 5, column 11'],
  ],
  [
    'a resume time without a unit',
    `${GREETER}conversations: { keep: 30d, visitor: { resume: 24 } }\n`,
    ['conversations.visitor.resume:', 'line 3, column '],
  ],
  [
    'a notice that is too long',
    `${GREETER}conversations: { keep: 30d, notice: { text: ${'a'.repeat(501)} } }\n`,
    ['conversations.notice.text: must be at most 500 characters', 'line 3, column '],
  ],
  [
    'a notice whose URL runs a script',
    `${GREETER}conversations: { keep: 30d, notice: { text: a, url: "javascript:alert(1)" } }\n`,
    ['conversations.notice.url:', 'line 3, column '],
  ],
  ['a negative temperature', `${GREETER}temperature: -0.1\n`, ['temperature:', 'line 3, column 14']],
  [
    'a temperature that is not a number',
    `${GREETER}temperature: hot\n`,
    ['temperature:', 'line 3, column 14'],
  ],
  ['a tool name with a space', `${GREETER}tools:\n  - a b\n`, ['tools[0]:', 'line 4, column 5']],
  ['a tool name of 65 letters', `${GREETER}tools: [${'a'.repeat(65)}]\n`, ['tools[0]:', 'line 3, column 9']],
  [
    'two tools with the same name',
    `${GREETER}tools: [a, {name: a}]\n`,
    ['tools[1].name:', 'line 3, column 19'],
  ],
  ['a page tool listed as a tool', `${GREETER}tools: [postMessage_a]\n`, ['tools[0]:', 'line 3, column 9']],
  ['a tool without a name', `${GREETER}tools: [{description: a}]\n`, ['tools[0].name:', 'line 3, column 9']],
  [
    'an invalid input schema',
    `${GREETER}tools: [{name: a, inputSchema: {type: object, properties: 5}}]\n`,
    ['tools[0].inputSchema.properties:', 'line 3, column '],
  ],
  ['an unknown pageTools value', `${GREETER}pageTools: none\n`, ['pageTools:', 'line 3, column 12']],
  [
    'pageTools that are both restricted and blocked',
    `${GREETER}pageTools: {restricted: [a], blocked: [b]}\n`,
    ['pageTools:', 'line 3, column 12'],
  ],
  [
    'rules that are not strings',
    `${GREETER}behavior: {rules: [1]}\n`,
    ['behavior.rules[0]:', 'line 3, column 20'],
  ],
  ['a repeated key', `${GREETER}name: Y\n`, ['name:', 'line 3, column 1']],
  ['an anchor', 'name: &a X\ninstructions: Hi\n', ['anchors', 'line 1, column 7']],
  ['an alias', 'name: X\ninstructions: *a\n', ['aliases', 'line 2, column 15']],
  ['a tag', 'name: !!str X\ninstructions: Hi\n', ['tags', 'line 1, column 7']],
  ['a `__proto__` key', `${GREETER}__proto__: {a: 1}\n`, ['__proto__', 'line 3, column 1']],
  ['more than 16 nesting levels', `${GREETER}x: ${'['.repeat(17)}${']'.repeat(17)}\n`, ['line 3, column ']],
  ['two documents', `${GREETER}---\n${GREETER}`, ['line 3', 'column 1']],
  [
    'an origin with a path',
    `${GREETER}embed: {origins: [https://a.example/b]}\n`,
    ['embed.origins[0]:', 'line 3'],
  ],
]

describe('an invalid definition', () => {
  test.each(invalid)(
    'with %s is rejected with 400 and the position of the error, and is not stored',
    async (_what, text, names) => {
      const app = await startApp()
      const { agent_id } = await app.createAgent()
      const before = await app.call('GET', '/v1/agents')
      const answers = [
        await sendDefinition(app, 'POST', '/v1/agents', 'application/yaml', text),
        await app.call('POST', '/v1/agents', { body: { yaml: text } }),
        await sendDefinition(app, 'PUT', `/v1/agents/${agent_id}`, 'text/yaml', text),
      ]
      for (const { status, body } of answers) {
        expect([status, body]).toEqual([400, { error: expect.any(String), code: 'invalid_value' }])
        for (const name of names) expect(body.error).toContain(name)
      }
      expect((await app.call('GET', '/v1/agents')).text).toBe(before.text)
    },
  )

  test('is rejected with an error that names the field, the allowed values and the position', async () => {
    const app = await startApp()
    const { body } = await app.call('POST', '/v1/agents', { body: { yaml: `${GREETER}temperature: 3\n` } })
    expect(body.error).toBe('temperature: must be between 0 and 2 (line 3, column 14)')
  })

  test('with unclosed front matter is rejected with 400', async () => {
    const app = await startApp()
    const { status, body } = await sendDefinition(
      app,
      'POST',
      '/v1/agents',
      'text/markdown',
      '---\nname: X\n',
    )
    expect([status, body.error]).toEqual([400, expect.stringMatching(/line 3, column 1/)])
  })
})

const padding = (bytes: number) => `${GREETER}#${'x'.repeat(bytes - GREETER.length - 2)}\n`
const LIMIT = 256 * 1024

describe('the body of a definition request', () => {
  test.each(['application/yaml', 'application/json', 'text/markdown'])(
    'may contain up to 256 KiB of %s and is rejected with 413 above that',
    async (mediaType) => {
      const app = await startApp()
      const markdown = (bytes: number) => '---\nname: X\n---\n\n'.padEnd(bytes, 'x')
      const bodyOf = (bytes: number) => {
        if (mediaType === 'text/markdown') return markdown(bytes)
        return mediaType === 'application/json' ? JSON.stringify({ yaml: padding(bytes) }) : padding(bytes)
      }
      const send = (bytes: number) => sendDefinition(app, 'POST', '/v1/agents', mediaType, bodyOf(bytes))
      expect((await send(LIMIT)).status).toBe(201)
      const { status, body } = await send(LIMIT + 1)
      expect([status, body.code]).toEqual([413, 'too_large'])
      expect(await listIds(app)).toHaveLength(1)
    },
  )

  test('is measured in bytes, not characters', async () => {
    const app = await startApp()
    const text = `name: X\ninstructions: ${'漢'.repeat(LIMIT / 3)}\n`
    expect((await sendDefinition(app, 'POST', '/v1/agents', 'application/yaml', text)).status).toBe(413)
  })

  test('is measured after its JSON escapes are decoded', async () => {
    const app = await startApp()
    const text = `name: X\ninstructions: ${'é'.repeat(130_000)}\n`
    const escaped = JSON.stringify({ yaml: text }).replaceAll('é', '\\u00e9')
    const { status, body } = await sendDefinition(app, 'POST', '/v1/agents', 'application/json', escaped)
    expect(status).toBe(201)
    expect((await app.call('GET', `/v1/agents/${body.agent_id}`)).body.yaml).toBe(text)
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'yaml',
    'text/yamlx',
  ])('is rejected with 415 and the list of accepted types when its type is %s', async (mediaType) => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    for (const [method, path] of [
      ['POST', '/v1/agents'],
      ['PUT', `/v1/agents/${agent_id}`],
    ] as const) {
      const { status, body } = await sendDefinition(app, method, path, mediaType, GREETER)
      expect([status, body.code]).toEqual([415, 'unsupported_media_type'])
      for (const accepted of [...rawYamlTypes, 'application/json', 'text/markdown'])
        expect(body.error).toContain(accepted)
    }
    expect(await listIds(app)).toEqual([agent_id])
  })

  test('is rejected with 400 in every format if it is not UTF-8', async () => {
    const app = await startApp()
    const bytes = (text: string) => Buffer.from(text.replace('people', 'p\xffople'), 'latin1')
    const answers: Answer[] = []
    for (const mediaType of rawYamlTypes) {
      answers.push(await sendDefinition(app, 'POST', '/v1/agents', mediaType, bytes(GREETER)))
    }
    answers.push(
      await sendDefinition(
        app,
        'POST',
        '/v1/agents',
        'text/markdown',
        bytes('---\nname: X\n---\n\nGreet people.'),
      ),
    )
    answers.push(
      await sendDefinition(
        app,
        'POST',
        '/v1/agents',
        'application/json',
        bytes(JSON.stringify({ yaml: GREETER })),
      ),
    )
    for (const { status, body } of answers)
      expect([status, body]).toEqual([
        400,
        { error: expect.stringContaining('UTF-8'), code: 'invalid_value' },
      ])
    expect(await listIds(app)).toEqual([])
  })

  test.each([
    ['no definition', {}, 'yaml'],
    ['a definition that is an object', { yaml: { name: 'X' } }, 'yaml'],
    ['a definition that is null', { yaml: null }, 'yaml'],
    ['an unknown format', { yaml: GREETER, format: 'toml' }, 'format'],
    ['an unpaired surrogate', { yaml: `${GREETER}# \ud800` }, 'Unicode'],
    ['a NUL character', { yaml: `${GREETER}# \0` }, 'U+0000'],
    ['a list', [GREETER], 'object'],
  ])('is rejected with 400 and an explanation if it is JSON with %s', async (_what, body, name) => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    for (const [method, path] of [
      ['POST', '/v1/agents'],
      ['PUT', `/v1/agents/${agent_id}`],
    ] as const) {
      const answer = await app.call(method, path, { body })
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_value'])
      expect(answer.body.error).toContain(name)
    }
    expect(await listIds(app)).toEqual([agent_id])
  })

  test.each(['agent_id', 'if_match'])(
    'is rejected with 400 if it is JSON sent with PUT and contains %s',
    async (field) => {
      const app = await startApp()
      const { agent_id } = await app.createAgent()
      const body = { yaml: GREETER, [field]: agent_id }
      const answer = await app.call('PUT', `/v1/agents/${agent_id}`, { body })
      expect([answer.status, answer.body]).toEqual([
        400,
        { error: `${field} is not a field of the request body`, code: 'invalid_value' },
      ])
    },
  )

  test('is rejected with 400 if it is malformed JSON', async () => {
    const app = await startApp()
    const { status, body } = await sendDefinition(app, 'POST', '/v1/agents', 'application/json', '{"yaml": "')
    expect([status, body]).toEqual([400, { error: expect.stringContaining('JSON'), code: 'invalid_json' }])
  })

  test('is required: a request without it returns 400', async () => {
    const app = await startApp()
    const { status, body } = await app.call('POST', '/v1/agents')
    expect([status, body.error]).toEqual([400, expect.stringContaining('yaml')])
  })
})
