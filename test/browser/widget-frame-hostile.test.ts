/** Tests that malicious model output cannot load resources, freeze the frame or mislead the user. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type FrameHarness, type OpenFrame, openFrameHarness } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

let harness: FrameHarness
let opened: OpenFrame
beforeAll(async () => {
  harness = await openFrameHarness()
  opened = await harness.open({ options: { history: false } })
})
afterAll(() => harness?.close())

/** Sends a message that the mock model repeats; returns the reply when it is shown. */
async function write(text: string) {
  await opened.frame.locator('textarea').fill(text)
  await opened.frame.locator('textarea').press('Enter')
  await opened.settle()
  const reply = opened.frame.locator('article.reply').last()
  await reply.locator('.prose').first().waitFor()
  return reply
}

/** Lists the requests that were not sent to the page's server or to Parley. */
function requestsElsewhere(): readonly string[] {
  const own = [new URL(harness.hostUrl).origin, harness.app.url]
  return opened.requests.filter((url) => !own.includes(new URL(url).origin))
}

const pixel = 'https://evil.example/pixel.png'

describe('a malicious reply', () => {
  test('shows images as links and does not load them', async () => {
    const reply = await write(
      `![a picture](${pixel}?a) ![](${pixel}?b) [![c](${pixel}?c)](https://evil.example/d)\n\n![r][r]\n\n[r]: ${pixel}?r`,
    )
    await reply.getByText('a picture').waitFor()
    expect(await reply.locator('img, picture, video, iframe, object, embed, svg image').count()).toBe(0)
    expect(requestsElsewhere()).toEqual([])
  })

  test('can link only to http, https and mailto URLs', async () => {
    const reply = await write(
      [
        '[one](javascript:alert(1))',
        '[two](JaVaScRiPt:alert(1))',
        '[three](data:text/html,<script>alert(1)</script>)',
        '[four](vbscript:x)',
        '[five](file:///etc/passwd)',
        '[six](/console)',
        '[seven](//evil.example)',
        '[eight](java&#10;script:alert(1))',
        '[nine](blob:https://evil.example/x)',
        '<javascript:alert(1)>',
        '[good](https://example.com/a?b=c)',
        '[mail](mailto:a@example.com)',
      ].join('\n\n'),
    )
    await reply.getByText('mail').waitFor()
    const links = await reply
      .locator('a')
      .evaluateAll((all) =>
        all.map((one) => [one.getAttribute('href'), one.getAttribute('target'), one.getAttribute('rel')]),
      )
    const rest = ['_blank', 'noopener noreferrer nofollow']
    expect(links).toEqual([
      ['https://example.com/a?b=c', ...rest],
      ['mailto:a@example.com', ...rest],
    ])
  })

  test('shows HTML as text', async () => {
    const html = `<script>globalThis.broken = 1</script>\n\n<img src="${pixel}" onerror="globalThis.broken = 1">\n\n<b onclick=x>bold</b> <style>*{display:none}</style><iframe srcdoc="x"></iframe><form action="https://evil.example"><input name=a></form><base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example">`
    const reply = await write(html)
    await reply.getByText('<script>').waitFor()
    expect(await reply.locator('script, img, b, style, iframe, form, input, base, meta').count()).toBe(0)
    expect(await opened.frame.evaluate(() => 'broken' in globalThis)).toBe(false)
    expect(requestsElsewhere()).toEqual([])
  })

  test('cannot reverse the direction of link text or code', async () => {
    const reply = await write(
      '[\u202emoc.elgoog\u202c](https://evil.example/) and `\u2066rm\u2069` and \u202ebackwards',
    )
    const link = reply.locator('a')
    expect(await link.innerText()).toBe('\ufffdmoc.elgoog\ufffd (evil.example)')
    expect(await link.getAttribute('title')).toBe('https://evil.example/')
    expect(await reply.locator('code').innerText()).toBe('\ufffdrm\ufffd')
    const bidi = await reply.locator('p').evaluate((one) => getComputedStyle(one).unicodeBidi)
    expect(bidi).toBe('isolate')
  })
})

/** Replies that are slow to parse; the test serves them itself because they exceed the input limit. */
const bombs: readonly [string, string][] = [
  ['60 KB of *a_', '*a_'.repeat(20_000)],
  ['quotes, 100,000 deep', '>'.repeat(100_000)],
  ['quotes, 1,500 deep', `${'>'.repeat(1500)} x`],
  ['lists, 200 deep', Array.from({ length: 200 }, (_, depth) => `${' '.repeat(depth)}- x`).join('\n')],
  ['brackets', '['.repeat(1900)],
  ['tildes', '~a'.repeat(9000)],
  ['backticks', Array.from({ length: 180 }, (_, length) => '`'.repeat(length)).join(' ')],
  ['open links', '[a]('.repeat(450)],
  ['a table of 20,000 cells', `|a|b|\n|-|-|\n${'|x|y|\n'.repeat(10_000)}`],
  ['a table with long rows', `|${'a|'.repeat(2000)}\n|${'-|'.repeat(2000)}\n|${'b|'.repeat(2000)}`],
  ['entities', '&'.repeat(19_000)],
  ['tags', '<a '.repeat(6000)],
  ['addresses', 'a@'.repeat(9000)],
  ['one long word', 'x'.repeat(200_000)],
  ['empty lines', '\n'.repeat(50_000)],
]

describe('the frame remains responsive while it shows a reply', () => {
  test.each(bombs)('with %s', async (_what, text) => {
    await opened.page.route('**/trpc/chat.stream*', (route) =>
      route.fulfill(answerOf(`before\n\n${text}\n\nafter`)),
    )
    const reply = await write('go')
    await reply.getByText('before', { exact: true }).first().waitFor()
    await reply
      .getByText(/after\s*$/)
      .first()
      .waitFor()
    await opened.frame.getByRole('button', { name: 'More actions' }).click({ timeout: 10_000 })
    await opened.page.keyboard.press('Escape')
    await opened.page.unroute('**/trpc/chat.stream*')
    expect(opened.complaints).toEqual([])
    expect(requestsElsewhere()).toEqual([])
  })
})

/** Returns an HTTP response with the content as a tRPC JSONL stream. */
function answerOf(content: string): { status: number; contentType: string; body: string } {
  const chunk = { choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }
  const lines = [
    { 0: [[0], [null, 0, 0]] },
    [0, 0, [[{ result: 0 }], ['result', 0, 1]]],
    [1, 0, [[{ data: 0 }], ['data', 0, 2]]],
    [2, 0, [[0], [null, 1, 3]]],
    [3, 1, [[[chunk]]]],
    [3, 0, [[]]],
  ].map((json) => JSON.stringify({ json }))
  return { status: 200, contentType: 'application/json', body: `${lines.join('\n')}\n` }
}
