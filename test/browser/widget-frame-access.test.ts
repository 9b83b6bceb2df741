/** Tests that the widget frame has no accessibility violations and supports right-to-left languages. */

import { createRequire } from 'node:module'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { waitForTransitions } from '../support/axe.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import {
  type FrameHarness,
  type OpenFrame,
  type OpenOptions,
  openFrameHarness,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

const markdown = `# One\n\n## Two\n\nText with \`code\`, **bold**, [a link](https://example.com).\n\n> quote\n\n- a\n- b\n  1. c\n\n- [x] done\n\n|a|b|\n|-|-|\n|1|2|\n\n\`\`\`js\nconst a = 1\n\`\`\`\n\n---`
const tools = [
  {
    name: 'postMessage_remove',
    inputSchema: { type: 'object' },
    annotations: { destructiveHint: true, title: 'Remove it' },
  },
  { name: 'postMessage_look', inputSchema: { type: 'object' } },
]

const states: readonly [string, OpenOptions, (opened: OpenFrame) => Promise<unknown>][] = [
  ['empty', { options: { welcomeMessage: 'Welcome' } }, ({ frame }) => frame.locator('.starters').waitFor()],
  [
    'a rich reply',
    {},
    async (opened) => {
      await opened.say(markdown)
      await opened.frame.locator('article.reply table').waitFor()
      await opened.settle()
    },
  ],
  [
    'a reply in progress',
    {},
    async (opened) => {
      await opened.say('[[delay:500]] one two three four five six seven eight nine ten eleven twelve')
      await opened.frame.locator('.dots').waitFor()
    },
  ],
  [
    'a failure',
    {},
    async (opened) => {
      await opened.say('[[error:500]]')
      await opened.frame.locator('.failure').waitFor()
    },
  ],
  ['a rejected key', { key: null }, ({ frame }) => frame.locator('.failure').waitFor()],
  [
    'an approval',
    { tools },
    async (opened) => {
      await opened.say('[[tool:postMessage_remove {"what":"all"}]]')
      await opened.frame.locator('.approval').waitFor()
    },
  ],
  [
    'an expanded tool call',
    { tools },
    async (opened) => {
      await opened.say('[[tool:postMessage_look {}]]')
      await opened.settle()
      await opened.frame.getByText(/^Used “.look.”$/).click()
      await opened.frame.getByText('Exact data').click()
      await opened.frame.getByRole('region', { name: 'Input' }).waitFor()
    },
  ],
  [
    'the menu',
    {},
    async (opened) => {
      await opened.say('hello')
      await opened.settle()
      await opened.frame.getByRole('button', { name: 'More actions' }).click()
    },
  ],
  [
    'a confirmation dialog',
    {},
    async (opened) => {
      await opened.say('hello')
      await opened.settle()
      await opened.frame.getByRole('button', { name: 'More actions' }).click()
      await opened.frame.getByRole('menuitem').first().click()
      await opened.frame.getByRole('dialog').waitFor()
    },
  ],
  ['text that is too long', {}, ({ frame }) => frame.locator('textarea').fill('x'.repeat(33_000))],
]

/** Runs axe in the frame; returns the violated rules with the affected HTML. */
async function violations(opened: OpenFrame): Promise<string[]> {
  await waitForTransitions(opened.frame)
  // The frame's CSP blocks script elements but does not apply to `evaluate`.
  const source = (await import('node:fs')).readFileSync(axePath, 'utf8')
  await opened.frame.evaluate(source)
  return opened.frame.evaluate(async () => {
    type Axe = { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    const { axe } = globalThis as unknown as { axe: Axe }
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    const found = await axe.run({ runOnly: tags })
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`),
    )
  })
}

describe.each(['light', 'dark'] as const)('the widget frame in the %s theme', (theme) => {
  test.each(states)('has no accessibility violations in the state: %s', async (name, options, act) => {
    const opened = await harness.open({
      ...options,
      options: { primaryColor: '#ffe600', ...options.options, theme },
    })
    await act(opened)
    await saveScreenshot(opened.page, `frame-axe-${theme}-${name.replaceAll(/\W+/g, '-')}`)
    expect(await violations(opened)).toEqual([])
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })
})

describe('the widget in a right-to-left language', () => {
  test.each([
    ['ar', 'إرسال', 'اكتب رسالة…'],
    ['he', 'שליחה', 'כתיבת הודעה…'],
  ])('is translated and mirrored (%s)', async (language, send, placeholder) => {
    const opened = await harness.open({ options: { language } })
    await opened.frame.getByRole('button', { name: send }).waitFor()
    const { lang, dir } = await opened.frame.evaluate(() => {
      const { lang, dir } = document.documentElement
      return { lang, dir }
    })
    expect({ lang, dir }).toEqual({ lang: language, dir: 'rtl' })
    expect(await opened.frame.locator('textarea').getAttribute('placeholder')).toBe(placeholder)
    await opened.say('مرحبا')
    await opened.settle()
    const places = await opened.frame.evaluate(() => {
      const leftOf = (selector: string) =>
        document.querySelector(selector)?.getBoundingClientRect().left ?? -1
      return { title: leftOf('h1'), close: leftOf('.header > button'), bubble: leftOf('.bubble') }
    })
    expect(places.close).toBeLessThan(places.title)
    expect(places.bubble).toBeLessThan(60)
    expect(await violations(opened)).toEqual([])
  })
})

/** Sends a message; returns what the widget announces to screen readers until the reply is complete. */
async function listAnnounced(opened: OpenFrame, text: string): Promise<string[]> {
  await opened.frame.evaluate(() => {
    const said: string[] = []
    Object.assign(globalThis, { announced: said })
    const region = document.querySelector('[aria-live]') as HTMLElement
    new MutationObserver(() => said.push(region.textContent ?? '')).observe(region, {
      childList: true,
      characterData: true,
      subtree: true,
    })
  })
  await opened.say(text)
  const read = () => opened.frame.evaluate(() => (globalThis as unknown as { announced: string[] }).announced)
  await expect
    .poll(read, { timeout: 20_000 })
    .toContainEqual(expect.stringContaining('The answer is complete.'))
  return (await read()).filter((words) => words !== '')
}

test('the widget announces each sentence and the end of a reply to screen readers', async () => {
  const spoken = await listAnnounced(
    await harness.open(),
    '[[delay:60]] The *first* sentence is here. The second one follows it now. And the third is the last one',
  )
  expect(spoken.join(' ')).toBe(
    'You said: The first sentence is here. The second one follows it now. And the third is the last one The answer is complete.',
  )
  for (const words of spoken) expect(words).toMatch(/[.]$/)
})

test('the widget announces at most 2,000 characters at once, including the end of the reply', async () => {
  const spoken = await listAnnounced(await harness.open(), '[[tokens:20000]]')
  for (const words of spoken) expect(words.length).toBeLessThanOrEqual(2_002)
  expect(spoken.at(-1)).toMatch(/^… .* The answer is complete\.$/)
})

test('the browser skips the layout of the parts of a long reply that are not visible', async () => {
  const opened = await harness.open()
  const paragraphs = Array.from({ length: 600 }, (_, index) => `Paragraph ${index + 1} of this reply.`)
  await opened.say(paragraphs.join('\n\n'))
  await opened.settle()
  const paragraph = (index: number) =>
    opened.frame.locator('article.reply p').filter({ hasText: new RegExp(`Paragraph ${index} of`) })
  const isLaidOut = (index: number) =>
    paragraph(index).evaluate((element) => element.checkVisibility({ contentVisibilityAuto: true }))
  await paragraph(600).evaluate((element) => element.scrollIntoView())
  await expect.poll(() => isLaidOut(600)).toBe(true)
  await expect.poll(() => isLaidOut(2)).toBe(false)
  await paragraph(2).evaluate((element) => element.scrollIntoView())
  await expect.poll(() => isLaidOut(2)).toBe(true)
  const texts = await opened.frame.locator('article.reply p').allTextContents()
  expect(texts.slice(-599)).toEqual(paragraphs.slice(1))
})

test('the widget does not cut off text on a narrow screen at 200% text size', async () => {
  const opened = await harness.open({ browser: { viewport: { width: 320, height: 360 } } })
  await opened.say(markdown)
  await opened.settle()
  await opened.frame.evaluate(() => {
    document.documentElement.style.fontSize = '30px'
  })
  const width = await opened.frame.evaluate(() => document.documentElement.scrollWidth)
  expect(width).toBeLessThanOrEqual(320)
})
