/** Tests which links in the widget show the host of their URL. */
import { expect, test } from 'vitest'
import { findHiddenHost } from '../../widget/frame/markdown/find-hidden-host.ts'

test.each([
  ['https://evil.test/login', 'https://bank.test/login', 'evil.test'],
  ['https://evil.test/', 'bank.test', 'evil.test'],
  ['https://evil.test/', 'Sign in at bank.test', 'evil.test'],
  ['https://evil.test/', '(bank.test)', 'evil.test'],
  ['https://evil.test:8443/', 'bank.test', 'evil.test:8443'],
  ['https://bank.test@evil.test/', 'https://bank.test@evil.test/', 'evil.test'],
  ['https://evil.test/', 'bank\u200b.test', 'evil.test'],
  ['https://xn--bnk-qla.test/', 'bank.test', 'xn--bnk-qla.test'],
])('a link to %s with the text "%s" shows the host %s', (href, text, host) => {
  expect(findHiddenHost(href, text)).toBe(host)
})

test.each([
  ['https://bank.test/login', 'https://bank.test/login'],
  ['https://www.bank.test/', 'bank.test'],
  ['https://bank.test/', 'our offers'],
  ['mailto:a@bank.test', 'a@bank.test'],
  ['https://bank.test/', 'BANK.test'],
])('a link to %s with the text "%s" does not show its host', (href, text) => {
  expect(findHiddenHost(href, text)).toBeUndefined()
})
