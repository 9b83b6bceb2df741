/** Tests how the widget frame processes replies, chat histories and colors. */
import fc from 'fast-check'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'
import { describe, expect, test, vi } from 'vitest'
import { toMessages, toTurnMessages } from '../../widget/frame/chat/to-messages.ts'
import { takeSentences } from '../../widget/frame/components/sentences.ts'
import { contrastOf, readableOn, textOn } from '../../widget/frame/contrast.ts'
import type { Entry } from '../../widget/frame/conversation.ts'
import {
  breakOffAll,
  mergeEntries,
  parseHistory,
  renderHistory,
} from '../../widget/frame/history/stored-entries.ts'
import { parseBlock } from '../../widget/frame/markdown/parse-block.ts'
import { isParseable } from '../../widget/frame/markdown/parse-limits.ts'
import { splitBlocks, withDefinitions } from '../../widget/frame/markdown/split-blocks.ts'

// Parsing may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const processor = unified().use(remarkParse).use(remarkGfm).freeze()

/** Parses Markdown to a syntax tree without positions and without trailing empty lines in unclosed fences. */
function treeOf(text: string): unknown[] {
  const { children } = processor.parse(text)
  return JSON.parse(
    JSON.stringify(children, (name, value) =>
      name === 'position' ? undefined : name === 'value' ? value.trimEnd() : value,
    ),
  )
}

/** Lines that affect how text is split into blocks. HTML does not, because it is shown as text. */
const line = fc.constantFrom(
  '',
  '',
  '',
  'text',
  '# head',
  '- item',
  '* item',
  '1. item',
  '   more',
  '  - nested',
  '    code',
  '\tcode',
  '```',
  '```js',
  '~~~',
  '````',
  '> quote',
  '> ```',
  '---',
  '===',
  '|a|b|',
  '|-|-|',
  '**bold',
  'end**',
  '  ```',
  '   ```',
  '- ```',
  ' ',
  '2) two',
)

describe('Markdown blocks', () => {
  test('equal the original text when joined', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => splitBlocks(text).join('') === text))
    fc.assert(
      fc.property(fc.array(line), (lines) => splitBlocks(lines.join('\n')).join('') === lines.join('\n')),
    )
  })

  test('render identically on their own and in the whole text', () => {
    const property = fc.property(fc.array(line, { maxLength: 14 }), (lines) => {
      const text = lines.join('\n')
      expect(splitBlocks(text).flatMap(treeOf)).toEqual(treeOf(text))
    })
    fc.assert(property, { numRuns: 300, examples: [[['    code', '', '2) two']]] })
  })

  test('do not change after they are complete, even if more text arrives', () => {
    const property = fc.property(fc.array(line, { maxLength: 14 }), fc.nat(), (lines, place) => {
      const text = lines.join('\n')
      const partial = splitBlocks(text.slice(0, place % (text.length + 1)))
      expect(splitBlocks(text).slice(0, Math.max(0, partial.length - 2))).toEqual(partial.slice(0, -2))
    })
    fc.assert(property, { numRuns: 500 })
  })

  test('contain one heading, paragraph, list or code block each, even in a long reply', () => {
    const text = '## Part\n\nText.\n\n- a\n- b\n\n```js\na\n\nb\n```\n\n'.repeat(100)
    expect(splitBlocks(text)).toHaveLength(400)
  })

  test("can use each other's link definitions", () => {
    const blocks = splitBlocks('See [it][a].\n\n```\n[x]\n\n[a]: https://example.com')
    expect(withDefinitions(blocks)[0]).toContain('[a]: https://example.com')
    expect(withDefinitions(splitBlocks('a [b]\n\nc'))).toEqual(['a [b]\n\n', 'c'])
  })

  test('are not parsed if they are too large, nested too deeply or full of markup', () => {
    expect(isParseable('x'.repeat(20_000))).toBe(true)
    expect(isParseable('x'.repeat(20_001))).toBe(false)
    expect(isParseable('*'.repeat(2001))).toBe(false)
    expect(parseBlock('> '.repeat(60))).toBe(undefined)
    expect(parseBlock('a *b*')).toMatchObject({ children: [{ type: 'paragraph' }] })
  })
})

const user = (text: string, id = 'u'): Entry => ({ kind: 'user', id, text })
const reply = (text: string): Entry => ({
  kind: 'reply',
  id: 'r',
  rounds: [{ text, calls: [] }],
  status: 'done',
})

const NOW = Date.UTC(2026, 0, 1)
const DAY_MS = 24 * 60 * 60 * 1000

describe('a chat history', () => {
  test('retains the newest entries that fit', () => {
    const many = Array.from({ length: 300 }, (_, index) => user(`${index}`))
    expect(parseHistory(renderHistory(many, NOW) ?? '', NOW)).toEqual(many.slice(-200))
    const large = Array.from({ length: 20 }, (_, index) => user(`${index}`.repeat(50_000)))
    const text = renderHistory(large, NOW) ?? ''
    expect(text.length).toBeLessThanOrEqual(1024 * 1024 + 100)
    expect(parseHistory(text, NOW).at(-1)).toEqual(large.at(-1))
  })

  test('expires 30 days after its last change', () => {
    const text = renderHistory([user('one')], NOW) ?? ''
    expect(parseHistory(text, NOW + 30 * DAY_MS - 1)).toHaveLength(1)
    expect(parseHistory(text, NOW + 30 * DAY_MS)).toEqual([])
  })

  test('marks an incomplete reply as interrupted', () => {
    const [entry] = breakOffAll([{ ...reply('half'), status: 'streaming' } as Entry])
    expect(entry).toMatchObject({ status: 'interrupted', failure: { code: 'reloaded' } })
  })

  test.each([
    '',
    'x',
    '7',
    'null',
    '{}',
    '{"version":99,"entries":[]}',
    `{"version":2,"savedAtMs":${NOW},"entries":[{"kind":"user","id":1}]}`,
    '{"version":2,"entries":[{"kind":"user","id":"a","text":"b"}]}',
  ])('is empty if its stored text is invalid: %s', (text) => expect(parseHistory(text, NOW)).toEqual([]))

  test('includes the entries that two tabs added', () => {
    const first = user('first', '1')
    const [here, there] = [user('here', '2'), user('there', '3')]
    expect(mergeEntries([first, there], [first], [first, here])).toEqual([first, there, here])
  })

  test('includes the changes of this tab but not the entries that either tab removed', () => {
    const [kept, removedHere, removedThere] = [user('a', 'a'), user('b', 'b'), user('c', 'c')]
    const changed = user('changed', 'a')
    const base = [kept, removedHere, removedThere]
    expect(mergeEntries([kept, removedHere], base, [changed, removedThere])).toEqual([changed])
  })

  test('places a regenerated reply directly after its question', () => {
    const [question, other] = [user('q', 'q'), user('other', 'o')]
    const [old, again] = [reply('old'), { ...reply('again'), id: 'r2' } as Entry]
    expect(mergeEntries([question, old, other], [question, old], [question, again])).toEqual([
      question,
      again,
      other,
    ])
  })
})

describe('the messages sent to the model', () => {
  test('do not contain messages that the provider refused', () => {
    const refused = { ...reply(''), status: 'failed', failure: { code: 'refused' } } as Entry
    const entries = [user('one'), reply('two'), user('bad'), refused, user('three')]
    expect(toMessages(entries, undefined).map(({ content }) => content)).toEqual(['one', 'two', 'three'])
  })

  test('include the system prompt as a system message if no agent is used', () => {
    expect(toTurnMessages([user('one')], 'Be brief.', {}, true)).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'one' },
    ])
    expect(toTurnMessages([user('one')], 'Be brief.', {}).map(({ role }) => role)).toEqual(['user', 'user'])
  })

  test('start with a user message, are limited in size and contain the page context before the newest question', () => {
    const entries = [user('one'), reply('two'), user('three')]
    expect(toMessages(entries, 'page')).toEqual([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'page' },
      { role: 'user', content: 'three' },
    ])
    const long = Array.from({ length: 1000 }, (_, index) =>
      index % 2 === 0 ? user(`q${index}`) : reply('a'.repeat(2000)),
    )
    const sent = toMessages([...long, user('last')], undefined)
    expect(sent.at(-1)).toEqual({ role: 'user', content: 'last' })
    expect(sent[0]?.role).toBe('user')
    expect(JSON.stringify(sent).length).toBeLessThan(540 * 1024)
    expect(sent.length).toBeLessThanOrEqual(400)
  })

  test('do not contain tool calls without a result', () => {
    const call = { id: 'c', name: 'postMessage_x', argumentsText: '{}' }
    const calls = [
      { ...call, status: 'done' as const, result: 'yes' },
      { ...call, id: 'd', status: 'failed' as const },
    ]
    const broken: Entry = { kind: 'reply', id: 'r', rounds: [{ text: '', calls }], status: 'stopped' }
    expect(toMessages([user('one'), broken], undefined).slice(1)).toMatchObject([
      { role: 'assistant', content: null, tool_calls: [{ id: 'c' }] },
      { role: 'tool', tool_call_id: 'c', content: 'yes' },
    ])
  })
})

describe('sentences for speech output', () => {
  test('are returned while the text grows and together equal the text', () => {
    const property = fc.property(
      fc.array(fc.constantFrom('word', ' ', '. ', '! ', '。', 'x.y', '\n'), { minLength: 1 }),
      (parts) => {
        const text = parts.join('')
        let taken = ''
        let start = 0
        for (let length = 1; length <= text.length; length++) {
          const { sentences, end } = takeSentences(text.slice(0, length), start, false)
          expect(end).toBeGreaterThanOrEqual(start)
          taken += ` ${sentences}`
          start = end
        }
        taken += ` ${takeSentences(text, start, true).sentences}`
        expect(taken.replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
      },
    )
    fc.assert(property)
  })

  test('do not contain Markdown syntax', () => {
    const { sentences } = takeSentences('## Title\n\n**Bold** and [a link](https://x.example). ```', 0, true)
    expect(sentences).toBe('Title Bold and a link.')
  })
})

test('text on any accent color, and any accent color as text, have a contrast ratio of at least 4.5', () => {
  const channel = fc.integer({ min: 0, max: 255 })
  const property = fc.property(fc.tuple(channel, channel, channel), (parts) => {
    const color = `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
    expect(contrastOf(textOn(color), color)).toBeGreaterThanOrEqual(4.5)
    for (const surfaces of [
      ['#ffffff', '#f3f3f6'],
      ['#16181e', '#20232b'],
    ]) {
      for (const surface of surfaces) {
        expect(contrastOf(readableOn(color, surfaces), surface)).toBeGreaterThanOrEqual(4.5)
      }
    }
  })
  fc.assert(property)
})
