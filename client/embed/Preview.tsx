/** Shows the widget at its real size and place on a page, with controls for its appearance. */
import {
  Alert,
  ColorInput,
  Group,
  SegmentedControl,
  Stack,
  Switch,
  Text,
  TextInput,
  Title,
} from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import { MockNotice } from '../first-run/MockNotice.tsx'
import { type Looks, listChanges } from './appearance.ts'
import { toUrl } from './origins.ts'

interface PreviewProps {
  readonly agentKey: string
  readonly looks: Looks
  readonly onChange: (looks: Looks) => void
}

type Device = 'desktop' | 'phone'

export function Preview({ agentKey, looks, onChange }: PreviewProps) {
  const [device, setDevice] = useState<Device>('desktop')
  const [address, setAddress] = useState('')
  const [settled] = useDebouncedValue(address.trim(), PAUSE_MS)
  const pageUrl = settled === '' ? undefined : toUrl(settled)
  const isBlocked = pageUrl?.protocol === 'http:' && window.location.protocol === 'https:'
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label="Preview">
      <Group justify="space-between">
        <Title order={2}>Preview</Title>
        <SegmentedControl
          aria-label="Device"
          size="xs"
          data={[
            { value: 'desktop', label: 'Desktop' },
            { value: 'phone', label: 'Phone' },
          ]}
          value={device}
          onChange={(next) => setDevice(next as Device)}
        />
      </Group>
      <MockNotice />
      <div className="preview">
        <Controls looks={looks} onChange={onChange} />
        <Stack gap="xs">
          <TextInput
            label="Page behind the widget"
            description="Leave this empty to see a sample page."
            placeholder="https://www.example.com"
            value={address}
            error={findAddressProblem(settled, pageUrl, isBlocked)}
            onChange={(event) => setAddress(event.currentTarget.value)}
          />
          {pageUrl === undefined || isBlocked ? null : (
            <Alert p="xs" color="gray">
              If the page stays empty or shows an error, it does not allow other sites to show it. The widget
              still works on it. Clear the field to see the sample page.
            </Alert>
          )}
          <Stage
            agentKey={agentKey}
            looks={looks}
            device={device}
            pageUrl={pageUrl === undefined || isBlocked ? null : pageUrl.href}
          />
        </Stack>
      </div>
    </Stack>
  )
}

function findAddressProblem(text: string, url: URL | undefined, isBlocked: boolean): string | undefined {
  if (text !== '' && url === undefined) return 'Enter a page URL, such as https://www.example.com'
  return isBlocked
    ? 'Enter an https:// URL. Browsers do not show http:// pages inside https:// pages.'
    : undefined
}

const PAUSE_MS = 250

interface StageProps {
  readonly agentKey: string
  readonly looks: Looks
  readonly device: Device
  readonly pageUrl: string | null
}

/** Shows `/embed/preview`, which embeds the widget like any other page. */
function Stage({ agentKey, looks, device, pageUrl }: StageProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isReady, setIsReady] = useState(false)
  const [settled] = useDebouncedValue(looks, PAUSE_MS)
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
    const options = { ...toOptions(settled), apiKey: agentKey, history: false }
    frame.current?.contentWindow?.postMessage({ type: 'preview', options, pageUrl }, window.location.origin)
  }, [isReady, settled, agentKey, pageUrl])
  return (
    <div className="preview-stage" data-device={device}>
      <iframe
        ref={frame}
        src="/embed/preview"
        title="Preview of the widget on a page"
        allow="clipboard-write"
      />
    </div>
  )
}

interface ControlsProps {
  readonly looks: Looks
  readonly onChange: (looks: Looks) => void
}

function Controls({ looks, onChange }: ControlsProps) {
  const set = (changes: Partial<Looks>) => onChange({ ...looks, ...changes })
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Widget theme"
        data={[
          { value: 'auto', label: 'Auto' },
          { value: 'light', label: 'Light' },
          { value: 'dark', label: 'Dark' },
        ]}
        value={looks.theme}
        onChange={(theme) => set({ theme: theme as Looks['theme'] })}
      />
      <ColorInput
        label="Color"
        format="hex"
        value={looks.primaryColor}
        onChange={(primaryColor) => set({ primaryColor })}
        eyeDropperButtonProps={{ 'aria-label': 'Pick a color from the screen' }}
      />
      <LookText name="title" label="Title" looks={looks} set={set} />
      <LookText name="greeting" label="Greeting" looks={looks} set={set} />
      <LookText name="welcomeMessage" label="Welcome message" looks={looks} set={set} />
      <LookText name="placeholder" label="Placeholder" looks={looks} set={set} />
      <div>
        <Text size="sm" fw={500} mb={4}>
          Position
        </Text>
        <SegmentedControl
          aria-label="Position"
          fullWidth
          data={[
            { value: 'bottom-left', label: 'Left' },
            { value: 'bottom-right', label: 'Right' },
          ]}
          value={looks.position}
          onChange={(position) => set({ position: position as Looks['position'] })}
        />
      </div>
      <Switch
        label="Open automatically"
        checked={looks.autoOpen}
        onChange={(event) => set({ autoOpen: event.currentTarget.checked })}
      />
    </Stack>
  )
}

/** Placeholders that describe each text's default. */
const withoutText = {
  title: 'From the definition',
  greeting: 'From the definition',
  welcomeMessage: 'None (shown above an empty chat)',
  placeholder: 'Type a message...',
} as const

interface LookTextProps {
  readonly name: keyof typeof withoutText
  readonly label: string
  readonly looks: Looks
  readonly set: (changes: Partial<Looks>) => void
}

function LookText({ name, label, looks, set }: LookTextProps) {
  return (
    <TextInput
      label={label}
      placeholder={withoutText[name]}
      value={looks[name]}
      onChange={(event) => set({ [name]: event.currentTarget.value })}
    />
  )
}

const texts = ['title', 'greeting', 'welcomeMessage', 'placeholder'] as const

/** Resets empty texts, so that the widget shows the definition's texts. */
function toOptions(looks: Looks): object {
  const { theme, position, primaryColor, autoOpen } = looks
  const resets = Object.fromEntries(texts.map((name) => [name, undefined]))
  return { theme, position, primaryColor, autoOpen, ...resets, ...Object.fromEntries(listChanges(looks)) }
}
