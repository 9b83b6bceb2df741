/** Tests the accepted formats of definitions, their unchanged storage, and their export as Markdown. */
import { describe, expect, test } from 'vitest'
import { FULL_DEFINITION, rawYamlTypes, sendDefinition } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'

const MARKDOWN = '---\nname: Greeter\ntools: [wave]\n---\n\nGreet people.\n\n---\n\nAlways.'

/** Media type, request body and stored text for each accepted format. */
const forms = [
  ...rawYamlTypes.map((type) => [type, GREETER, GREETER] as const),
  ['application/yaml; charset=utf-8', GREETER, GREETER],
  ['TEXT/YAML', GREETER, GREETER],
  ['application/json', JSON.stringify({ yaml: GREETER }), GREETER],
  ['application/json; charset=utf-8', JSON.stringify({ yaml: GREETER }), GREETER],
  ['application/json', JSON.stringify({ yaml: MARKDOWN, format: 'markdown' }), MARKDOWN],
  ['text/markdown', MARKDOWN, MARKDOWN],
  ['text/markdown; charset=UTF-8', MARKDOWN, MARKDOWN],
] as const

describe('an agent definition', () => {
  test.each(forms)('can be sent as %s to create an agent: %j', async (mediaType, body, kept) => {
    const app = await startApp()
    const { status, body: created } = await sendDefinition(app, 'POST', '/v1/agents', mediaType, body)
    expect(status).toBe(201)
    expect((await app.call('GET', `/v1/agents/${created.agent_id}`)).body).toMatchObject({
      yaml: kept,
      definition: { name: 'Greeter' },
    })
  })

  test.each(forms)('can be sent as %s to replace an agent: %j', async (mediaType, body, kept) => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(FULL_DEFINITION)
    const path = `/v1/agents/${agent_id}`
    const { status, body: replaced } = await sendDefinition(app, 'PUT', path, mediaType, body)
    expect([status, replaced.name, replaced.version]).toEqual([200, 'Greeter', 2])
    expect((await app.call('GET', path)).body.yaml).toBe(kept)
  })
})

const texts = [
  ['a byte order mark', `\uFEFF${GREETER}`],
  ['Windows line endings', GREETER.replaceAll('\n', '\r\n')],
  ['no newline at the end', GREETER.trimEnd()],
  ['blank lines before and after', `\n\n${GREETER}\n\n\n`],
  [
    'comments, odd spacing and quotes',
    `# top\n"name":    'Greeter'   # it\ninstructions: >-\n   Greet\n   people.\n# end`,
  ],
  [
    'non-ASCII text',
    `name: Grüßer 漢字 👩‍👩‍👧\ninstructions: "שלום \\u00e9 e\u0301 \u{1F600} \u00a0\u2028"\n`,
  ],
  ['flow-style braces', '{name: Greeter, instructions: Greet people.}'],
  ['a document marker', `---\n${GREETER}...\n`],
] as const

describe('the stored text of a definition', () => {
  test.each(texts)('equals the sent text byte for byte, even with %s', async (_what, text) => {
    const app = await startApp()
    const raw = await sendDefinition(app, 'POST', '/v1/agents', 'application/yaml', text)
    const json = await app.call('POST', '/v1/agents', { body: { yaml: text } })
    expect([raw.status, json.status]).toEqual([201, 201])
    for (const { agent_id } of [raw.body, json.body]) {
      const read = await app.call('GET', `/v1/agents/${agent_id}`)
      expect(Buffer.from(read.body.yaml)).toEqual(Buffer.from(text))
      const versions = await app.call('GET', `/v1/agents/${agent_id}/versions`)
      expect(versions.body.data[0].yaml).toBe(text)
    }
  })

  test.each([
    ['a byte order mark', `\uFEFF${MARKDOWN}`],
    ['Windows line endings', MARKDOWN.replaceAll('\n', '\r\n')],
    ['several newlines at the end', `${MARKDOWN}\n\n\n`],
  ])('equals the sent Markdown byte for byte, even with %s', async (_what, text) => {
    const app = await startApp()
    const { status, body } = await sendDefinition(app, 'POST', '/v1/agents', 'text/markdown', text)
    expect(status).toBe(201)
    const read = await app.call('GET', `/v1/agents/${body.agent_id}`)
    expect(Buffer.from(read.body.yaml)).toEqual(Buffer.from(text))
    expect(read.body.markdown).toBe(text)
    expect(text.endsWith(read.body.instructions)).toBe(true)
  })
})

describe('an agent exported as Markdown', () => {
  test.each([['every field', FULL_DEFINITION] as const, ...texts])(
    'is identical after an import and a second export, even with %s',
    async (_what, text) => {
      const app = await startApp()
      const { agent_id } = await app.createAgent(text)
      const first = (await app.call('GET', `/v1/agents/${agent_id}`)).body
      const posted = await sendDefinition(app, 'POST', '/v1/agents', 'text/markdown', first.markdown)
      expect(posted.status).toBe(201)
      const second = (await app.call('GET', `/v1/agents/${posted.body.agent_id}`)).body
      expect(second.definition).toEqual(first.definition)
      expect(second.instructions).toBe(first.instructions)
      expect([second.markdown, second.yaml]).toEqual([first.markdown, first.markdown])
      const [mine, copied] = await Promise.all(
        [await keyOf(app, agent_id), posted.body.agent_key].map((key) =>
          app.call('GET', '/v1/agents/me', { key }),
        ),
      )
      expect({ ...copied?.body, id: agent_id }).toEqual(mine?.body)
    },
  )
})

async function keyOf(app: TestApp, agentId: string): Promise<string> {
  const { body } = await app.call('GET', '/v1/agents')
  return body.data.find(({ id }: { id: string }) => id === agentId).agent_key
}
