/** Tests how an agent's earlier versions are listed and restored. */
import { describe, expect, test } from 'vitest'
import { FULL_DEFINITION, sendDefinition } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { publicIdOf } from '../../support/audit.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const numbered = (count: number) => `name: Number ${count}\ninstructions: Say ${count}.\n`

/** Creates an agent with `count` versions and returns its path. */
async function createWithVersions(app: TestApp, count: number): Promise<string> {
  const { agent_id } = await app.createAgent(numbered(1))
  for (let version = 2; version <= count; version++)
    await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: numbered(version) } })
  return `/v1/agents/${agent_id}`
}

async function versionsOf(
  app: TestApp,
  path: string,
): Promise<[version: number, name: string, current: boolean][]> {
  const { body } = await app.call('GET', `${path}/versions`)
  return body.data.map((item: { version: number; name: string; current: boolean }) => [
    item.version,
    item.name,
    item.current,
  ])
}

describe('the versions of an agent', () => {
  test('start with the initial definition as version 1', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const path = await createWithVersions(app, 1)
    const author = publicIdOf(app.key)
    expect((await app.call('GET', `${path}/versions`)).body).toEqual({
      object: 'list',
      data: [
        {
          author,
          note: null,
          version: 1,
          name: 'Number 1',
          yaml: numbered(1),
          created_at: 1_800_000_000,
          current: true,
        },
      ],
    })
  })

  test('are listed newest first, each with its creation time', async () => {
    const clock = createFakeClock(1_800_000_000)
    const app = await startApp({}, { clock })
    const path = await createWithVersions(app, 1)
    for (const version of [2, 3]) {
      clock.advance(60)
      await app.call('PUT', path, { body: { yaml: numbered(version) } })
    }
    clock.advance(60)
    const author = publicIdOf(app.key)
    expect((await app.call('GET', `${path}/versions`)).body.data).toEqual([
      {
        author,
        note: null,
        version: 3,
        name: 'Number 3',
        yaml: numbered(3),
        created_at: 1_800_000_120,
        current: true,
      },
      {
        author,
        note: null,
        version: 2,
        name: 'Number 2',
        yaml: numbered(2),
        created_at: 1_800_000_060,
        current: false,
      },
      {
        author,
        note: null,
        version: 1,
        name: 'Number 1',
        yaml: numbered(1),
        created_at: 1_800_000_000,
        current: false,
      },
    ])
  })

  test('contain the note of the request that created them', async () => {
    const app = await startApp()
    const first = await app.call('POST', '/v1/agents', { body: { yaml: numbered(1), note: 'First draft' } })
    const path = `/v1/agents/${first.body.agent_id}`
    await app.call('PUT', path, { body: { yaml: numbered(2), note: 'Says 2' } })
    await app.call('PUT', path, { body: { yaml: numbered(3) } })
    await app.call('POST', `${path}/versions/1/restore`)
    const { body } = await app.call('GET', `${path}/versions`)
    expect(body.data.map(({ note }: { note: string | null }) => note)).toEqual([
      null,
      null,
      'Says 2',
      'First draft',
    ])
  })

  test.each([
    ['', 'must not be empty'],
    ['x'.repeat(201), 'must be at most 200 characters'],
    ['two\nlines', 'must not contain control characters'],
  ])('reject the note %j', async (note, message) => {
    const app = await startApp()
    const { status, body } = await app.call('POST', '/v1/agents', { body: { yaml: numbered(1), note } })
    expect(status).toBe(400)
    expect(body.error).toContain(`note: ${message}`)
  })

  test('do not change when the key is rotated or a definition is rejected', async () => {
    const app = await startApp()
    const path = await createWithVersions(app, 2)
    await app.call('POST', `${path}/rotate-key`)
    await app.call('PUT', path, { body: { yaml: 'name: X' } })
    expect(await versionsOf(app, path)).toHaveLength(2)
  })
})

describe('restoring a version of an agent', () => {
  test('creates a new current version with the restored text', async () => {
    const clock = createFakeClock(1_800_000_000)
    const app = await startApp({}, { clock })
    const { agent_id, agent_key } = await app.createAgent(FULL_DEFINITION)
    const path = `/v1/agents/${agent_id}`
    await app.call('PUT', path, { body: { yaml: GREETER } })
    clock.advance(60)
    const { status, headers, body } = await app.call('POST', `${path}/versions/1/restore`)
    expect(status).toBe(200)
    expect(body).toMatchObject({ agent_id, agent_key, name: 'Guide', updated: true, version: 3 })
    expect(headers.get('etag')).toBe('"3"')
    const read = (await app.call('GET', path)).body
    expect(read).toMatchObject({ yaml: FULL_DEFINITION, version: 3, created_at: 1_800_000_000 })
    expect((await app.call('GET', '/v1/agents/me', { key: agent_key })).body.greeting).toBe('Hello there!')
    expect(await versionsOf(app, path)).toEqual([
      [3, 'Guide', true],
      [2, 'Greeter', false],
      [1, 'Guide', false],
    ])
  })

  test('preserves the format of a Markdown definition', async () => {
    const app = await startApp()
    const markdown = '---\nname: Marked\n---\n\nBe *bold*.'
    const { body: created } = await sendDefinition(app, 'POST', '/v1/agents', 'text/markdown', markdown)
    const path = `/v1/agents/${created.agent_id}`
    await app.call('PUT', path, { body: { yaml: GREETER } })
    await app.call('POST', `${path}/versions/1/restore`)
    expect((await app.call('GET', path)).body).toMatchObject({
      yaml: markdown,
      markdown,
      instructions: 'Be *bold*.',
    })
  })

  test('creates a new version even if the restored version is the current one', async () => {
    const app = await startApp()
    const path = await createWithVersions(app, 2)
    expect((await app.call('POST', `${path}/versions/2/restore`)).body).toMatchObject({
      name: 'Number 2',
      version: 3,
    })
    expect(await versionsOf(app, path)).toHaveLength(3)
  })

  test('accepts an empty JSON body', async () => {
    const app = await startApp()
    const path = await createWithVersions(app, 2)
    expect((await app.call('POST', `${path}/versions/1/restore`, { body: {} })).body.name).toBe('Number 1')
  })

  test('returns 400 and restores nothing if the body contains a version', async () => {
    const app = await startApp()
    const path = await createWithVersions(app, 2)
    const { status, body } = await app.call('POST', `${path}/versions/1/restore`, { body: { version: 2 } })
    expect([status, body.error]).toEqual([400, 'version is not a field of the request body'])
    expect(await versionsOf(app, path)).toHaveLength(2)
  })

  test.each([3, 999_999_999])('returns 404 for version %i, which does not exist', async (version) => {
    const app = await startApp()
    const path = await createWithVersions(app, 2)
    const { status, body } = await app.call('POST', `${path}/versions/${version}/restore`)
    expect([status, body]).toEqual([404, { error: expect.stringContaining(`${version}`), code: 'not_found' }])
    expect(await versionsOf(app, path)).toHaveLength(2)
  })

  test.each(['0', '-1', 'abc', '1.0', '1e0', '01', '%201', '1%2F', '9'.repeat(30)])(
    'returns 400 for version %s',
    async (version) => {
      const app = await startApp()
      const path = await createWithVersions(app, 1)
      const { status, body } = await app.call('POST', `${path}/versions/${version}/restore`)
      expect([status, body.code]).toEqual([400, 'invalid_value'])
      expect(body.error).toBe('version: must be a whole number, 1 or more')
      expect(await versionsOf(app, path)).toHaveLength(1)
    },
  )

  test('returns 400 for an unknown field', async () => {
    const app = await startApp()
    const path = await createWithVersions(app, 2)
    const { status, body } = await app.call('POST', `${path}/versions/1/restore`, { body: { dry_run: true } })
    expect([status, body.error]).toEqual([400, expect.stringContaining('dry_run')])
    expect(await versionsOf(app, path)).toHaveLength(2)
  })

  test('returns 404 for a version number that exists only for another agent', async () => {
    const app = await startApp()
    await createWithVersions(app, 5)
    const path = await createWithVersions(app, 2)
    expect((await app.call('POST', `${path}/versions/4/restore`)).status).toBe(404)
  })
})
