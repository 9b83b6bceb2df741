/** Previews the widget at its actual size and position on a page, at desktop or phone width. */

import { Group, SegmentedControl, Stack, TextInput, Title } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect, useMemo, useRef, useState } from 'react'
import { MockNotice } from '../first-run/MockNotice.tsx'
import { t } from '../strings/language.ts'
import type { PageOptions } from './appearance.ts'
import type { Options } from './embed-code.ts'
import { toUrl } from './origins.ts'
import { isPageShown, PageNotice, usePageCheck } from './PageNotice.tsx'

interface PreviewProps {
  readonly agentKey: string
  /**
   * The saved version. A new version reloads the preview, because the page's content security policy allows
   * only that version's image sites.
   */
  readonly version: number
  readonly options: Options
  readonly page: PageOptions
}

type Device = 'desktop' | 'phone'

export function Preview({ agentKey, version, options, page }: PreviewProps) {
  const [device, setDevice] = useState<Device>('desktop')
  const [address, setAddress] = useState('')
  const [settled] = useDebouncedValue(address.trim(), PAUSE_MS)
  const pageUrl = settled === '' ? undefined : toUrl(settled)
  const isBlocked = pageUrl?.protocol === 'http:' && window.location.protocol === 'https:'
  const allowedUrl = isBlocked ? undefined : pageUrl
  const checked = usePageCheck(allowedUrl)
  return (
    <Stack gap="sm" component="section" className="panel preview" p="md" aria-label={t('embed.preview')}>
      <Group justify="space-between">
        <Title order={2}>{t('embed.preview')}</Title>
        <SegmentedControl
          aria-label={t('embed.device')}
          size="xs"
          data={[
            { value: 'desktop', label: t('embed.desktop') },
            { value: 'phone', label: t('embed.phone') },
          ]}
          value={device}
          onChange={(next) => setDevice(next as Device)}
        />
      </Group>
      <MockNotice />
      <TextInput
        label={t('embed.pageBehind')}
        description={t('embed.pageBehindHelp')}
        placeholder="https://www.example.com"
        value={address}
        error={findAddressProblem(settled, pageUrl, isBlocked)}
        onChange={(event) => setAddress(event.currentTarget.value)}
      />
      <PageNotice url={allowedUrl} checked={checked} onSample={() => setAddress('')} />
      <Stage
        key={version}
        agentKey={agentKey}
        options={options}
        page={page}
        device={device}
        pageUrl={allowedUrl !== undefined && isPageShown(checked) ? allowedUrl.href : null}
      />
    </Stack>
  )
}

function findAddressProblem(text: string, url: URL | undefined, isBlocked: boolean): string | undefined {
  if (text !== '' && url === undefined) return t('embed.enterUrl')
  return isBlocked ? t('embed.enterHttps') : undefined
}

const PAUSE_MS = 250

interface StageProps {
  readonly agentKey: string
  readonly options: Options
  readonly page: PageOptions
  readonly device: Device
  readonly pageUrl: string | null
}

/** Shows `/embed/preview`, which embeds the widget like any other page. */
function Stage({ agentKey, options, page, device, pageUrl }: StageProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isReady, setIsReady] = useState(false)
  const shown = useMemo(() => ({ ...options, ...withoutEmpty(page), teaserDelay: 0 }), [options, page])
  const [settled] = useDebouncedValue(shown, PAUSE_MS)
  useEffect(() => {
    const onMessage = ({ source, origin, data }: MessageEvent<{ type?: unknown } | null>) => {
      if (source !== frame.current?.contentWindow || origin !== window.location.origin) return
      if (data?.type === 'preview-ready') setIsReady(true)
    }
    window.addEventListener('message', onMessage)
    return () => window.removeEventListener('message', onMessage)
  }, [])
  useEffect(() => {
    if (!isReady) return
    const sent = { ...settled, apiKey: agentKey, history: false }
    frame.current?.contentWindow?.postMessage(
      { type: 'preview', options: sent, pageUrl },
      window.location.origin,
    )
  }, [isReady, settled, agentKey, pageUrl])
  return (
    <div className="preview-stage" data-device={device}>
      <iframe ref={frame} src="/embed/preview" title={t('embed.previewFrame')} allow="clipboard-write" />
    </div>
  )
}

/** Removes empty strings, so that the widget shows its defaults. */
function withoutEmpty(page: PageOptions): object {
  return Object.fromEntries(
    Object.entries(page).map(([name, value]) => [name, value === '' ? undefined : value]),
  )
}
