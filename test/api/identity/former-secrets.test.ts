/** Tests that tokens and sealed keys survive a change of PARLEY_SECRET with PARLEY_SECRET_PREVIOUS. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/parse.ts'
import { createSealer } from '../../../src/lib/sealer.ts'
import { openApp, startApp, type TestApp } from '../../support/app.ts'
import { startupErrorOf } from '../../support/database.ts'
import { makeFolder } from '../../support/process.ts'
import { reserveArtifact } from '../../support/watch.ts'

const [FIRST, SECOND, THIRD] = ['first', 'second', 'third'].map((name) =>
  `the ${name} secret, `.repeat(3).trim(),
)

/** Returns a function that maps secrets, newest first, to settings for one data directory. */
async function makeInstallation() {
  const dataDir = join(await makeFolder(), 'data')
  return (...[secret, ...former]: (string | undefined)[]) => ({
    PARLEY_DATA_DIR: dataDir,
    PARLEY_SECRET: secret ?? '',
    PARLEY_SECRET_PREVIOUS: former.join('\n'),
  })
}

const statusOf = async (app: TestApp, { artifact_id: id, view_token: key }: Record<string, string>) =>
  (await app.call('GET', `/artifacts/${id}/status`, { key: key as string })).status

describe('after the server secret is changed', () => {
  test('old tokens remain valid while the old secret is listed, and new tokens do not depend on it', async () => {
    const env = await makeInstallation()
    const before = await openApp(env(FIRST))
    const old = await reserveArtifact(before)
    await before.close()
    const key = { PARLEY_PARENT_KEY: before.key }
    const during = await openApp({ ...env(THIRD, SECOND, FIRST), ...key })
    expect(await statusOf(during, { ...old })).toBe(200)
    const fresh = await reserveArtifact(during, {})
    expect(fresh.view_token.slice(0, 12)).not.toBe(old.view_token.slice(0, 12))
    await during.close()
    const after = await startApp({ ...env(THIRD), ...key })
    expect([await statusOf(after, { ...old }), await statusOf(after, { ...fresh })]).toEqual([401, 200])
  })

  test('agent keys can still be read, and the old secret is unnecessary after one start with both secrets', async () => {
    const env = await makeInstallation()
    const before = await openApp(env(FIRST))
    const created = [await before.createAgent(), await before.createAgent()]
    await before.close()
    expect(await startupErrorOf(openApp(env(SECOND)))).toContain('PARLEY_SECRET_PREVIOUS')
    const keys = created.map(({ agent_key }) => agent_key).sort()
    for (const secrets of [[SECOND, FIRST], [SECOND]]) {
      const app = await openApp({ ...env(...secrets), PARLEY_PARENT_KEY: before.key })
      const { body } = await app.call('GET', '/v1/agents')
      expect(body.data.map(({ agent_key }: { agent_key: string }) => agent_key).sort()).toEqual(keys)
      await app.close()
    }
  })

  test('a key that cannot be opened does not prevent startup or the resealing of other keys', async () => {
    const env = await makeInstallation()
    const app = await openApp(env(FIRST))
    const created = [await app.createAgent(), await app.createAgent(), await app.createAgent()]
    const ids = created.map(({ agent_id }) => agent_id).sort()
    const { db } = app.service.deps
    const rows = await db.selectFrom('agents').select(['id', 'key_sealed']).orderBy('id').execute()
    const [other] = rows.map(({ key_sealed }) => key_sealed)
    const agents = db.updateTable('agents').set({ key_sealed: other as string })
    await agents.where('id', '=', ids[1] as string).execute()
    await app.close()
    const after = await startApp(env(SECOND, FIRST))
    const { db: now, sealer } = after.service.deps
    const sealed = await now.selectFrom('agents').select('key_sealed').orderBy('id').execute()
    expect(sealed.map(({ key_sealed }) => key_sealed.split('.')[1] === sealer.keyId)).toEqual([
      true,
      false,
      true,
    ])
  })

  test('a key that was sealed with an unknown secret prevents startup', async () => {
    const env = await makeInstallation()
    const app = await openApp(env(FIRST))
    await app.createAgent()
    const { agent_id } = await app.createAgent()
    const key_sealed = createSealer(THIRD as string, randomBytes).seal('agnt_key-x', agent_id)
    await app.service.deps.db.updateTable('agents').set({ key_sealed }).where('id', '=', agent_id).execute()
    await app.close()
    expect(await startupErrorOf(openApp(env(SECOND, FIRST)))).toMatch(/encrypted with a different secret/)
  })
})

describe('former secrets', () => {
  test('are read one per line and must be at least 32 bytes long', async () => {
    const read = (text: string) => parseConfig({ PARLEY_SECRET_PREVIOUS: text })
    const { config } = await read(`${FIRST}\n\n  ${SECOND}  \r\n`)
    expect(config.formerSecrets).toEqual([FIRST, SECOND])
    expect((await parseConfig({})).config.formerSecrets).toEqual([])
    const problem = await startupErrorOf(read(`${FIRST}\nshort`))
    expect(problem).toContain('PARLEY_SECRET_PREVIOUS must be secrets of at least 32 bytes')
    expect(problem).not.toContain('first')
  })

  test('can open old sealed keys but do not seal new ones', () => {
    const former = createSealer(FIRST as string, randomBytes)
    const sealer = createSealer(SECOND as string, randomBytes, [FIRST as string])
    expect(sealer.open(former.seal('text', 'agent'), 'agent')).toBe('text')
    expect(() => sealer.open(former.seal('text', 'agent'), 'other')).toThrow('belongs to another record')
    expect(() => former.open(sealer.seal('text', 'agent'), 'agent')).toThrow('a different master key')
  })
})
