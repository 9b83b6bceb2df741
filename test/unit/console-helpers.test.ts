/** Tests the console's helper functions for origins, YAML paths, embed code and dates. */
import { describe, expect, test } from 'vitest'
import { pathOf } from '../../client/agents/complete-definition.ts'
import { defaultPageOptions, listChanges } from '../../client/embed/appearance.ts'
import { renderReact, renderScript } from '../../client/embed/embed-code.ts'
import { checkPage } from '../../client/embed/origins.ts'
import { renderDay } from '../../client/format.ts'

describe('checkPage', () => {
  const own = 'http://127.0.0.1:3000'
  const isAllowed = (address: string, ...origins: string[]) => checkPage(address, origins, own)?.isShown

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
  ])('for the page %s and the allowed origin %s returns isShown: %s', (address, origin, isShown) => {
    expect(isAllowed(address, origin)).toBe(isShown)
  })

  test('accepts every site if the agent has no allowed origins', () => {
    expect(isAllowed('https://anything.example')).toBe(true)
  })

  test.each(['', 'mailto:a@b', 'ftp://example.com', '::'])(
    'returns undefined for the invalid address %j',
    (address) => {
      expect(isAllowed(address, 'https://example.com')).toBeUndefined()
    },
  )
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
])('after the lines %j, a key indented as %j belongs to the path %j', (above, lead, path) => {
  expect(pathOf(above, lead).map((step) => (typeof step === 'string' ? step : 'item'))).toEqual(path)
})

describe('the embed code', () => {
  const saved = { name: 'Guide', embed: { theme: { avatar: 'https://a.example/b.png', radius: 8 } } }

  test('contains only options that differ from the saved agent, in escaped form', () => {
    const draft = { ...saved, embed: { ...saved.embed, title: 'A "b" & c' } }
    const options = listChanges(draft, saved, { ...defaultPageOptions, autoOpen: true })
    const embedding = { origin: 'https://chat.example', agentKey: 'agnt_key-0123456789abSECRET', options }
    expect(renderScript(embedding)).toBe(
      '<script\n  src="https://chat.example/embed/parley.js?key=agnt_key-0123456789ab"\n' +
        '  data-api-key="agnt_key-0123456789abSECRET"\n' +
        '  data-title="A &quot;b&quot; &amp; c"\n  data-auto-open="true"\n  async\n></script>',
    )
    expect(renderReact(embedding)).toContain('      title={"A \\"b\\" & c"}\n      autoOpen\n')
  })

  test('restores the defaults of fields that the draft removes', () => {
    expect(listChanges({ name: 'Guide' }, saved, defaultPageOptions)).toEqual({ avatar: '', radius: 16 })
    expect(listChanges(saved, saved, defaultPageOptions)).toEqual({})
  })

  test('sets the header color only if the draft or the saved agent sets it', () => {
    const themed = (theme: object) => ({ name: 'Guide', embed: { theme } })
    const accent = { primaryColor: '#0f766e' }
    expect(listChanges(themed(accent), themed({}), defaultPageOptions)).toEqual(accent)
    expect(listChanges(themed({}), themed({ headerColor: '#000000' }), defaultPageOptions)).toEqual({
      headerColor: '#4f46e5',
    })
  })
})

test('a day is shown relative to today', () => {
  const noon = Date.parse('2026-03-10T12:00:00Z')
  expect(['2026-03-10', '2026-03-09', '2026-03-01'].map((day) => renderDay(day, noon))).toEqual([
    'today',
    'yesterday',
    '9 days ago',
  ])
})
