/** Tests how a page identifies its user to the widget, and what a different user sees. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { AUDIENCE, createSecret, ISSUER, identifyingAgent, signWithSecret } from '../support/identities.ts'
import { tool } from '../support/tools.ts'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
let secret: string
/** The subjects that the tool `whoami` received, oldest first; undefined for an anonymous visitor. */
const received: (string | undefined)[] = []
const whoami = tool((_args, { visitor }) => {
  received.push(visitor?.verified ? visitor.subject : undefined)
  return 'noted'
})
let forgetful: { readonly agent_id: string; readonly agent_key: string }
let forgetfulSecret: string
beforeAll(async () => {
  harness = await openWidgetHarness({}, identifyingAgent(), { tools: { whoami } })
  secret = await createSecret(harness.app, harness.agent.agent_id)
  const { conversations: _stored, ...definition } = JSON.parse(identifyingAgent({}, { tools: ['whoami'] }))
  forgetful = await harness.app.createAgent(JSON.stringify(definition))
  forgetfulSecret = await createSecret(harness.app, forgetful.agent_id)
})
afterAll(() => harness?.close())

/** Signs an identity that expires in `seconds`; a negative number means that it has already expired. */
function sign(sub: string, seconds = 300, key = secret): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  const iat = now - (seconds < 0 ? 3000 : 0)
  return signWithSecret(key, { iss: ISSUER, aud: AUDIENCE, sub, iat, exp: now + seconds })
}

/** Opens a page; with `answers`, it has `getVisitorToken`, which returns them in order and then never resolves. */
async function open(
  visitorToken: string | undefined,
  answers?: readonly string[],
  apiKey = harness.agent.agent_key,
): Promise<WidgetPage> {
  const config = JSON.stringify({
    apiKey,
    autoOpen: true,
    ...(visitorToken && { visitorToken }),
  })
  const ask = `ParleyChatConfig.getVisitorToken = () => { asked++; return new Promise((resolve) => answers[0] && resolve(answers.shift())) }`
  const setUp = `asked = 0; codes = []; answers = ${JSON.stringify(answers ?? [])}; ParleyChatConfig = ${config}`
  const listen = `document.addEventListener('parley-chat-error', (event) => codes.push(event.detail.code))`
  return harness.open({
    head: `<script>${setUp}; ${answers === undefined ? '' : ask}; ${listen}</script>`,
    body: `<script src="${harness.app.url}/embed/parley.js"></script>`,
  })
}

const run = (opened: WidgetPage, code: string): Promise<unknown> => opened.page.evaluate(code)
const said = (opened: WidgetPage, text: string) => opened.frame.locator('main').getByText(`You said: ${text}`)

async function say(opened: WidgetPage, text: string): Promise<void> {
  await run(opened, `ParleyChat.sendMessage(${JSON.stringify(text)})`)
  await said(opened, text).waitFor()
}

/** Holds back the next exchange of an identity; `requested` resolves when the widget has sent it. */
async function holdReading({ page }: WidgetPage) {
  const requested = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  await page.route(/visitor\.session/, async (route) => {
    requested.resolve()
    await released.promise
    await route.continue()
  })
  return { requested: requested.promise, release: released.resolve }
}

const listSubjects = async () =>
  (await harness.app.call('GET', '/v1/visitors')).body.data.map(({ subject }: { subject: string }) => subject)

describe('a page that identifies its user', () => {
  test('shows the conversation that the user started in another browser', async () => {
    const first = await open(await sign('ada'))
    await say(first, 'from the first browser')
    expect(await listSubjects()).toContain('ada')
    const second = await open(await sign('ada'))
    await said(second, 'from the first browser').waitFor()
    expect([...first.complaints, ...second.complaints]).toEqual([])
    await first.page.close()
    await second.page.close()
  })

  test('hides the conversation of the previous user after setVisitor or resetVisitor', async () => {
    const opened = await open(await sign('grace'))
    await say(opened, 'secret of grace')
    await run(opened, `ParleyChat.setVisitor(${JSON.stringify(await sign('alan'))})`)
    await opened.frame.locator('.user').waitFor({ state: 'detached' })
    await say(opened, 'from alan')
    expect(await opened.frame.locator('main').innerText()).not.toContain('grace')
    const { body } = await harness.app.call('GET', '/v1/visitors?subject=alan')
    expect(body.data).toMatchObject([{ kind: 'verified', conversations: 1 }])
    await run(opened, 'ParleyChat.resetVisitor()')
    await opened.frame.locator('.user').waitFor({ state: 'detached' })
    await say(opened, 'from an anonymous visitor')
    const { body: after } = await harness.app.call('GET', '/v1/visitors?subject=alan')
    expect(after.data).toMatchObject([{ conversations: 1 }])
    await opened.page.close()
  })

  test("sends a message to the new user's conversation, even before the frame has loaded it", async () => {
    const opened = await open(await sign('niklaus'))
    await say(opened, 'first')
    const { requested, release } = await holdReading(opened)
    await run(opened, `ParleyChat.setVisitor(${JSON.stringify(await sign('kathleen'))})`)
    await requested
    await run(opened, "ParleyChat.sendMessage('during the reading')")
    release()
    await said(opened, 'during the reading').waitFor()
    const { body } = await harness.app.call('GET', '/v1/visitors?subject=kathleen')
    expect(body.data).toMatchObject([{ conversations: 1 }])
    await opened.page.close()
  })

  test('keeps the conversation of an anonymous visitor who signs in', async () => {
    const opened = await open(undefined)
    await say(opened, 'before the sign-in')
    await run(opened, `ParleyChat.setVisitor(${JSON.stringify(await sign('edsger'))})`)
    await expect.poll(listSubjects).toContain('edsger')
    await said(opened, 'before the sign-in').waitFor()
    await opened.page.close()
  })

  test('provides a new identity when the old one has expired', async () => {
    const opened = await open(await sign('barbara', -60), [await sign('barbara')])
    await say(opened, 'after the expiry')
    expect(await run(opened, 'asked')).toBe(1)
    expect(await listSubjects()).toContain('barbara')
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('provides the next identity after resetVisitor, which hides the previous conversation', async () => {
    const opened = await open(undefined, [await sign('rosalind'), await sign('dorothy')])
    await say(opened, 'secret of rosalind')
    await run(opened, 'ParleyChat.resetVisitor()')
    await opened.frame.locator('.user').waitFor({ state: 'detached' })
    await say(opened, 'from dorothy')
    expect(await opened.frame.locator('main').innerText()).not.toContain('rosalind')
    expect(await run(opened, 'asked')).toBe(2)
    const { body } = await harness.app.call('GET', '/v1/visitors?subject=dorothy')
    expect(body.data).toMatchObject([{ kind: 'verified', conversations: 1 }])
    const { body: before } = await harness.app.call('GET', '/v1/visitors?subject=rosalind')
    expect(before.data).toMatchObject([{ conversations: 1 }])
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('cannot identify the user with a token that was requested before resetVisitor but arrives after it', async () => {
    const opened = await open(undefined, [])
    await expect.poll(() => run(opened, 'asked')).toBe(1)
    await run(opened, 'late = new Promise((resolve) => { resolveLate = resolve }); 0')
    await run(
      opened,
      'ParleyChat.configure({ getVisitorToken: () => { asked++; return asked === 2 ? late : answers.shift() } })',
    )
    await run(opened, 'ParleyChat.resetVisitor()')
    await expect.poll(() => run(opened, 'asked')).toBe(2)
    await run(opened, `answers.push(${JSON.stringify(await sign('lise'))})`)
    await run(opened, 'ParleyChat.resetVisitor()')
    await expect.poll(() => run(opened, 'asked')).toBe(3)
    await run(opened, `resolveLate(${JSON.stringify(await sign('otto'))})`)
    await say(opened, 'from lise')
    expect(await listSubjects()).toContain('lise')
    expect(await listSubjects()).not.toContain('otto')
    await opened.page.close()
  })

  test('shows a request to sign in again if it provides no identity within ten seconds', async () => {
    const opened = await open(undefined, [])
    await run(opened, "ParleyChat.sendMessage('Hello.')")
    const notice = opened.frame.locator('main, footer').getByText('Your sign-in has expired. Sign in again.')
    await notice.first().waitFor({ timeout: 30_000 })
    expect(await run(opened, 'codes')).toContain('identity_expired')
    expect(await opened.frame.locator('article.reply', { hasText: 'You said' }).count()).toBe(0)
    await opened.page.close()
  })

  test('receives an error for an invalid identity, and the visitor does not become anonymous', async () => {
    const before = (await listSubjects()).length
    const opened = await open(await signWithSecret('vsk_forged-forged-forged-forged', { sub: 'mallory' }))
    await run(opened, "ParleyChat.sendMessage('Hello.')")
    await expect.poll(() => run(opened, 'codes')).toContain('identity_invalid')
    await opened.frame.getByText('This chat could not confirm who you are. Sign in again.').first().waitFor()
    expect((await listSubjects()).length).toBe(before)
    await opened.page.close()
  })
})

describe('a page that identifies its user to an agent that stores nothing', () => {
  const signForgetful = (sub: string, seconds?: number) => sign(sub, seconds, forgetfulSecret)
  const openForgetful = (token: string | undefined, answers?: readonly string[]) =>
    open(token, answers, forgetful.agent_key)

  /** Asks the agent to call `whoami`; returns the subjects that the tool received since then. */
  async function callTool(opened: WidgetPage): Promise<readonly unknown[]> {
    const before = received.length
    await run(opened, "ParleyChat.sendMessage('[[tool:whoami {}]]')")
    await expect.poll(() => received.length).toBe(before + 1)
    await opened.frame.locator('article.reply[aria-busy=true]').waitFor({ state: 'detached' })
    return received.slice(before)
  }

  test('passes the user to server tools, even after setVisitor and resetVisitor', async () => {
    const opened = await openForgetful(await signForgetful('hedy'))
    expect(await callTool(opened)).toEqual(['hedy'])
    await run(opened, `ParleyChat.setVisitor(${JSON.stringify(await signForgetful('radia'))})`)
    expect(await callTool(opened)).toEqual(['radia'])
    await run(opened, 'ParleyChat.resetVisitor()')
    expect(await callTool(opened)).toEqual([undefined])
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('provides a new identity after the old one has expired, and after logout', async () => {
    const answers = [await signForgetful('karen'), await signForgetful('frances')]
    const opened = await openForgetful(await signForgetful('karen', -60), answers)
    expect(await callTool(opened)).toEqual(['karen'])
    await run(opened, 'ParleyChat.logout()')
    expect(await callTool(opened)).toEqual(['frances'])
    expect(await run(opened, 'asked')).toBe(2)
    await opened.page.close()
  })

  test('provides a new identity after resetVisitor', async () => {
    const answers = [await signForgetful('maria'), await signForgetful('emmy')]
    const opened = await openForgetful(undefined, answers)
    expect(await callTool(opened)).toEqual(['maria'])
    await run(opened, 'ParleyChat.resetVisitor()')
    expect(await callTool(opened)).toEqual(['emmy'])
    expect(await run(opened, 'asked')).toBe(2)
    await opened.page.close()
  })

  test('receives an error for an invalid identity, and no tool runs', async () => {
    const before = received.length
    const opened = await openForgetful(
      await signWithSecret('vsk_forged-forged-forged-forged', { sub: 'eve' }),
    )
    await run(opened, "ParleyChat.sendMessage('[[tool:whoami {}]]')")
    await expect.poll(() => run(opened, 'codes')).toContain('identity_invalid')
    await opened.frame.getByText('This chat could not confirm who you are. Sign in again.').first().waitFor()
    expect(received.length).toBe(before)
    await opened.page.close()
  })

  test('creates no visitor token for an anonymous visitor', async () => {
    const opened = await openForgetful(undefined)
    const sessions: string[] = []
    opened.page.on('request', (request) => {
      if (request.url().includes('visitor.session') || request.headers()['x-parley-visitor'])
        sessions.push(request.url())
    })
    expect(await callTool(opened)).toEqual([undefined])
    expect(sessions).toEqual([])
    await opened.page.close()
  })
})
