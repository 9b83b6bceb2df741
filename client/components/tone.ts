/** Defines the tones of a status. */
export type Tone = 'good' | 'warn' | 'bad' | 'active' | 'quiet'
