/** Tests the widget's dictation, read-aloud button and disclaimer, which the agent's definition controls. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { type FrameHarness, helper, openFrameHarness, visibleText } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

async function openWith(embed: string) {
  const { agent_key: apiKey } = await harness.app.createAgent(`${helper}${embed}`)
  return harness.open({ key: apiKey })
}

describe('the disclaimer', () => {
  test('is shown by default', async () => {
    const opened = await harness.open()
    await visibleText(opened.frame, 'AI assistant. It can make mistakes.').waitFor()
    expect(await opened.frame.locator('.disclaimer a').count()).toBe(0)
    expect(await listAxeFaults(opened.frame)).toEqual([])
  })

  test('has the text and the link from the definition', async () => {
    const opened = await openWith('  disclaimer: { text: Please check., url: https://a.example/privacy }\n')
    await visibleText(opened.frame, 'Please check.').waitFor()
    const link = opened.frame.getByRole('link', { name: 'Privacy' })
    expect(await link.getAttribute('href')).toBe('https://a.example/privacy')
  })

  test('is hidden if the definition hides it', async () => {
    const opened = await openWith('  disclaimer: false\n')
    await opened.say('hello')
    await visibleText(opened.frame, 'You said: hello').waitFor()
    expect(await opened.frame.locator('.disclaimer').count()).toBe(0)
  })
})

describe('dictation', () => {
  const definition = '  dictation: true\n'

  /** Replaces the browser's speech recognition, which needs a microphone and a service on the internet. */
  function hear(): void {
    Object.assign(globalThis, {
      SpeechRecognition: class {
        lang = ''
        onresult?: (event: object) => void
        onerror?: (event: object) => void
        onend?: () => void
        start() {
          Object.assign(globalThis, { recognition: this })
        }
        stop() {
          this.onend?.()
        }
      },
    })
  }

  interface Heard {
    recognition?: { onresult(event: object): void; onerror(event: object): void; onend(): void; lang: string }
  }

  test("appends the visitor's words to the text in the input", async () => {
    const opened = await openWith(definition)
    await opened.frame.evaluate(hear)
    await opened.frame.locator('textarea').fill('Hello,')
    await opened.frame.getByRole('button', { name: 'Dictate' }).press('Enter')
    await opened.frame.getByRole('button', { name: 'Stop dictating' }).waitFor()
    await opened.frame.evaluate(() => {
      const { recognition } = globalThis as Heard
      recognition?.onresult({ results: [[{ transcript: 'two rooms' }], [{ transcript: ' please' }]] })
    })
    expect(await opened.frame.locator('textarea').inputValue()).toBe('Hello, two rooms please')
    await opened.frame.getByRole('button', { name: 'Stop dictating' }).click()
    await opened.frame.getByRole('button', { name: 'Dictate' }).waitFor()
    expect(await opened.frame.evaluate(() => (globalThis as Heard).recognition?.lang)).toBe('en-US')
  })

  test('shows an error if the browser denies access to the microphone', async () => {
    const opened = await openWith(definition)
    await opened.frame.evaluate(hear)
    await opened.frame.getByRole('textbox').fill('x')
    await opened.frame.getByRole('button', { name: 'Dictate' }).click()
    await opened.frame.evaluate(() => {
      const { recognition } = globalThis as Heard
      recognition?.onerror({ error: 'not-allowed' })
      recognition?.onend()
    })
    await visibleText(opened.frame, 'The microphone cannot be used.').waitFor()
  })

  test('is not offered, and the microphone is blocked, unless the definition allows it', async () => {
    const opened = await harness.open()
    await opened.frame.evaluate(hear)
    await opened.frame.getByRole('textbox').fill('x')
    expect(await opened.frame.getByRole('button', { name: 'Dictate' }).count()).toBe(0)
    const policyOf = async (key: string) => {
      const { headers } = await fetch(`${harness.app.url}/embed/frame?key=${key.slice(0, 21)}`)
      return headers.get('permissions-policy')
    }
    const { agent_key: key } = await harness.app.createAgent(`${helper}${definition}`)
    expect(await policyOf(key)).toContain('microphone=(self)')
    expect(await policyOf(harness.agent.agent_key)).toContain('microphone=()')
  })
})

describe('reading aloud', () => {
  test('speaks the answer without markup, sentence by sentence, until the visitor stops it', async () => {
    const opened = await openWith('  readAloud: true\n')
    await opened.frame.evaluate(() => {
      const spoken: string[] = []
      Object.assign(globalThis, { spoken })
      speechSynthesis.speak = ({ text }) => void spoken.push(text)
      speechSynthesis.cancel = () => void spoken.push('(stopped)')
    })
    await opened.say('**Hi.** Second one!')
    await visibleText(opened.frame, 'Second one!').last().waitFor()
    await opened.settle()
    await opened.frame.getByRole('button', { name: 'Read aloud' }).last().click()
    await opened.frame.getByRole('button', { name: 'Stop reading' }).click()
    await opened.frame.getByRole('button', { name: 'Stop reading' }).waitFor({ state: 'detached' })
    const spoken = await opened.frame.evaluate(() => (globalThis as unknown as { spoken: string[] }).spoken)
    expect(spoken).toEqual(['You said: Hi.', 'Second one!', '(stopped)'])
  })
})

test('a link shows the host of its URL unless its text contains the host', async () => {
  const opened = await harness.open()
  await opened.say('see [the guide](https://www.docs.example/a) and [docs.example](https://docs.example/b)')
  await opened.settle()
  const reply = opened.frame.locator('article.reply').last()
  expect(await reply.getByRole('link').allInnerTexts()).toEqual(['the guide (docs.example)', 'docs.example'])
})
