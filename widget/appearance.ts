/** Defines the widget's appearance: the fields that the agent's theme and the page's options share. */

/** Every field is optional. The page's options override the agent's theme, which overrides the defaults. */
export interface Appearance {
  /** A CSS color without `var()`; in the agent's theme, it has the form `#rrggbb`. */
  readonly primaryColor?: string
  /**
   * Round image next to the title and the answers: a `data:` URL, or a URL on a site that the agent's theme
   * uses for its images.
   */
  readonly avatar?: string
  /** Image that replaces the title in the header. */
  readonly logo?: string
  readonly headerStyle?: 'plain' | 'solid' | 'gradient'
  /** Default: the primary color. */
  readonly headerColor?: string
  readonly launcherIcon?: 'chat' | 'question' | 'sparkles' | 'wave' | 'avatar'
  /** Text next to the launcher's icon. */
  readonly launcherLabel?: string
  /** Text of the bubble above the closed launcher. */
  readonly teaser?: string
  /** Seconds after which the teaser appears. */
  readonly teaserDelay?: number
  readonly font?: 'inter' | 'system' | 'rounded' | 'serif' | 'mono'
  /** Radius of the window's corners, in pixels. */
  readonly radius?: number
  readonly density?: 'comfortable' | 'compact'
  readonly position?: 'bottom-right' | 'bottom-left'
  /** Pixels if it is a number; the page can also set a CSS length. */
  readonly width?: string | number
  readonly height?: string | number
}

/** `embed.theme` of the agent's definition (docs/agents.md). */
export interface AgentTheme extends Appearance {
  readonly colorScheme?: 'light' | 'dark' | 'auto'
}

export const defaultAppearance = {
  primaryColor: '#4f46e5',
  headerStyle: 'plain',
  launcherIcon: 'chat',
  teaserDelay: 3,
  font: 'inter',
  radius: 16,
  density: 'comfortable',
  position: 'bottom-right',
  width: 400,
  height: 720,
} as const satisfies Appearance
