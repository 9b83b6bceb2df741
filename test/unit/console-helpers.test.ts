/** What the console's pages work out by themselves: who may frame an agent, where a key stands, the code to copy. */
import { describe, expect, test } from 'vitest'
import { pathOf } from '../../client/agents/complete-definition.ts'
import { defaultLooks, renderReact, renderScript } from '../../client/embed/appearance.ts'
import { checkPage } from '../../client/embed/origins.ts'
import { renderDay } from '../../client/format.ts'

describe('a page', () => {
  const own = 'http://127.0.0.1:3000'
  const judge = (address: string, ...origins: string[]) => checkPage(address, origins, own)?.isShown

  test.each([
    ['https://example.com', 'https://example.com', true],
    ['example.com/shop?x=1', 'https://example.com', true],
    ['https://EXAMPLE.com', 'https://example.COM', true],
    ['https://example.com:443', 'https://example.com', true],
    ['https://example.com:8443', 'https://example.com', false],
    ['https://example.com:8443', 'https://example.com:8443', true],
    ['http://example.com', 'https://example.com', false],
    ['https://example.com', 'http://example.com', true],
    ['https://a.b.example.com', 'https://*.example.com', true],
    ['https://example.com', 'https://*.example.com', false],
    ['https://notexample.com', 'https://*.example.com', false],
    ['http://127.0.0.1:3000/console', 'https://example.com', true],
  ])('%s under %s: %s', (address, origin, isShown) => {
    expect(judge(address, origin)).toBe(isShown)
  })

  test('of any site may show an agent that names none', () => {
    expect(judge('https://anything.example')).toBe(true)
  })

  test.each(['', 'mailto:a@b', 'ftp://example.com', '::'])('is not meant by %j', (address) => {
    expect(judge(address, 'https://example.com')).toBeUndefined()
  })
})

test.each<[above: string[], lead: string, path: (string | 'item')[]]>([
  [[], '', []],
  [['embed:'], '  ', ['embed']],
  [['embed:', '  title: A'], '  ', ['embed']],
  [['tools:', '  - name: a'], '    ', ['tools', 'item']],
  [['tools:'], '  - ', ['tools', 'item']],
  [['tools:', '- name: a'], '- ', ['tools', 'item']],
  [['tools:', '- name: a'], '  ', ['tools', 'item']],
  [['tools:', '  - name: a', '    inputSchema:'], '      ', ['tools', 'item', 'inputSchema']],
  [['tools:', '  - name: a', 'behavior:'], '  ', ['behavior']],
  [['behavior:', '  tone: a', '', '# note'], '', []],
])('after %j a key behind %j stands in %j', (above, lead, path) => {
  expect(pathOf(above, lead).map((step) => (typeof step === 'string' ? step : 'item'))).toEqual(path)
})

test('the code to copy has what differs from the defaults, and nothing that ends it early', () => {
  const looks = { ...defaultLooks, title: 'A "b" & c', autoOpen: true }
  const embedding = { origin: 'https://chat.example', agentKey: 'agnt_key-x', looks }
  expect(renderScript(embedding)).toBe(
    '<script\n  src="https://chat.example/embed/parley.js"\n  data-api-key="agnt_key-x"\n' +
      '  data-title="A &quot;b&quot; &amp; c"\n  data-auto-open="true"\n  async\n></script>',
  )
  expect(renderReact(embedding)).toContain('      title={"A \\"b\\" & c"}\n      autoOpen\n')
})

test('a day is told by its distance from today', () => {
  const noon = Date.parse('2026-03-10T12:00:00Z')
  expect(['2026-03-10', '2026-03-09', '2026-03-01'].map((day) => renderDay(day, noon))).toEqual([
    'today',
    'yesterday',
    '9 days ago',
  ])
})
