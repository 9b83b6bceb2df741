/** Tests the sign-in links that the first start and the `sign-in` command print. */
import { expect, test, vi } from 'vitest'
import { runCommandInProcess } from '../support/command.ts'
import { behindProxy } from '../support/console.ts'
import { makeFolder, printedLink, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Signs in with the link as the console page does; returns the HTTP status of a request with the session. */
async function follow(link: string): Promise<number> {
  const { origin, hash } = new URL(link)
  const headers = {
    'Sec-Fetch-Site': 'same-origin',
    'X-Requested-With': 'parley',
    'Content-Type': 'application/json',
  }
  const signedIn = await fetch(`${origin}/v1/manager/sign-in`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ link: hash.slice(1) }),
  })
  const [cookie = ''] = signedIn.headers.getSetCookie()
  const me = await fetch(`${origin}/v1/manager/me`, { headers: { Cookie: cookie } })
  return me.status
}

test('the first start and the `sign-in` command each print a single-use sign-in link', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const [, first = ''] = await server.prints(printedLink)
  expect(first.startsWith(`${server.url}/console/sign-in#`)).toBe(true)
  expect([await follow(first), await follow(first)]).toEqual([200, 401])

  const { port } = new URL(server.url)
  const command = await runCommandInProcess(['sign-in'], { folder, env: { PORT: port } })
  expect(command).toMatchObject({ code: 0, stderr: '' })
  expect(await follow(command.stdout.trim())).toBe(200)
  const json = await runCommandInProcess(['sign-in', '--json'], {
    folder,
    env: { PARLEY_PUBLIC_URL: 'https://chat.example.org/' },
  })
  expect(JSON.parse(json.stdout)).toEqual({
    url: expect.stringMatching(/^https:\/\/chat\.example\.org\/console\/sign-in#[\w-]{43}$/),
    expires_at: expect.any(Number),
  })
  await server.stop()
  const again = await startServer({ folder })
  expect(again.stdout).not.toContain('sign-in#')
  await again.stop()
})

test('no sign-in links are printed when a proxy signs users in', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder, env: behindProxy })
  expect(server.key).toMatch(/^svc_/)
  expect(server.stdout).not.toContain('sign-in#')
  expect(await runCommandInProcess(['sign-in'], { folder, env: behindProxy })).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('The proxy authenticates users'),
  })
  await server.stop()
})
