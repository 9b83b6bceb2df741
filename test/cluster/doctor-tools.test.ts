/** Tests the checks of `parley doctor` for host modules, MCP servers, Redis and the clock. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { findFreePort } from '../support/free-port.ts'
import { startMcpHttpServer, stdioProgram } from '../support/mcp.ts'
import { makeFolder, runParley } from '../support/process.ts'
import { startRedis } from '../support/redis.ts'

vi.setConfig({ testTimeout: 60_000 })

const hooks = `
setInterval(() => {}, 1000)
export const tools = { find_room: { handler: () => 'Gull' } }
export const onUploadComplete = () => {}`

/** Runs `parley doctor` with these MCP servers; returns the results by check name. */
async function runDoctor(folder: string, mcp: object, env: Record<string, string>) {
  await writeFile(join(folder, 'parley.yaml'), JSON.stringify({ mcp }))
  const all = { PORT: '0', PARLEY_CONFIG: 'parley.yaml', PARLEY_HOOKS: 'hooks.mjs', ...env }
  const { stdout } = await runParley(['doctor', '--json'], { folder, env: all })
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Record<string, string>[] }
  return {
    ok,
    ...Object.fromEntries(checks.map(({ check, state, message }) => [check, `${state}: ${message}`])),
  }
}

test('doctor reports working components and exits even though a timer of the host module is still active', async () => {
  const [folder, redis, http] = [await makeFolder(), await startRedis(), await startMcpHttpServer()]
  await writeFile(join(folder, 'hooks.mjs'), hooks)
  const mcp = { far: { url: http.url }, near: { command: process.execPath, args: [stdioProgram] } }
  const found = await runDoctor(folder, mcp, { REDIS_URL: redis.url, PARLEY_STORAGE_QUOTA_BYTES: '1' })
  expect(found).toMatchObject({
    ok: true,
    'host module': expect.stringMatching(/^ok: .*hooks\.mjs has 1 tools and onUploadComplete$/),
    'mcp far': expect.stringMatching(/^ok: http:\S+ lists [1-9]\d* tools$/),
    'mcp near': expect.stringMatching(/^ok: .* lists [1-9]\d* tools$/),
    redis: expect.stringMatching(/^ok: Redis \d+\.\S+ at 127\.0\.0\.1:\d+$/),
    clock: expect.stringMatching(/^ok: 20\S+Z, the same as the clock of Redis at \S+$/),
  })
  expect(http.process.exitCode).toBeNull()
})

test('doctor suggests a remedy for each component that fails', async () => {
  const folder = await makeFolder()
  await writeFile(join(folder, 'hooks.mjs'), 'export const tools = 7')
  const unreachable = `127.0.0.1:${await findFreePort()}`
  const mcp = { far: { url: `http://${unreachable}/mcp` }, near: { command: './nowhere' } }
  const env = { REDIS_URL: `redis://:hidden@${unreachable}/0`, PARLEY_STORAGE_QUOTA_BYTES: '0' }
  const found = await runDoctor(folder, mcp, env)
  expect(found).toMatchObject({
    ok: false,
    'host module': expect.stringMatching(/^fail: PARLEY_HOOKS \(.*\): tools must be/),
    'mcp far': expect.stringMatching(
      /^warn: http:\S+ is not usable .*correct mcp\.far in the PARLEY_CONFIG file$/,
    ),
    'mcp near': expect.stringMatching(/^warn: \.\/nowhere is not usable .*ENOENT/),
    redis: expect.stringMatching(/^warn: Redis at 127\.0\.0\.1:\d+ is not usable .*correct REDIS_URL/),
    'free space': expect.stringMatching(/^warn: .*(each parent key may store unlimited data|free up space)/),
  })
  expect(JSON.stringify(found)).not.toContain('hidden')
})
